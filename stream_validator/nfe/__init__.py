"""Reading of NF-e, NFC-e and their events: bytes in, facts out."""
