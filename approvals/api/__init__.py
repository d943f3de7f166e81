"""The part of the REST API by which people's answers come: cases and requests for approval."""
