"""The live pipeline: the same core, driven by Kafka. Needs the extra ``stream``."""
