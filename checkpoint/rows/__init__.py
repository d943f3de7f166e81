"""Tables read and written in sets: one module for each table, and no decision in any of them."""
