"""The dashboards, written in Python with Grafana's own SDK and committed as the JSON that Grafana reads."""
