"""Producers and operators' tools: what reads and writes the topics besides the workers."""
