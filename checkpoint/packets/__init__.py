"""What goes into a resume packet: read, quoted, chosen and cut to its budget."""
