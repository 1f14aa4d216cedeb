"""ANP's register: model, as-of index, bitemporal store, imports."""
