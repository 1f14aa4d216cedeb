"""Checks electronic invoices of GLP cylinders against the law of the day of issue and ANP's register."""

__version__ = "0.1.0"
