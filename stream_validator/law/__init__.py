"""The law as data: norms, windows, articles, tables, and the catalogue of rules."""
