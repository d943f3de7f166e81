"""What agents hand over: read, checked against every rule, and made into rows."""
