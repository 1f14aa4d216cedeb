"""What runs the product: images, compose files, Prometheus, Grafana."""
