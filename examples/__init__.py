"""Example data: invented companies, registers, signed invoices and events, for the demo, tests and benchmarks.

Nothing here is a real company or person: names are made up, identifiers only have right check digits, and the
certificates come from an authority that is made at run time and trusted by nobody.
"""
