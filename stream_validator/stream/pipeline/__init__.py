"""The worker: a Faust application around the judging core."""
