"""What is told to those who watch: definitions of the metrics, timings, the HTTP endpoint, the page about them."""
