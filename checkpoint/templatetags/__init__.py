"""How templates show what is in the record."""
