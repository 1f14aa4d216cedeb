"""Measurements against the floor and the peers, in one run. Ratios are what counts: machines differ and are shared."""
