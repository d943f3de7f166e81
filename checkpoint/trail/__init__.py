"""The audit trail read back: search, export, anchors and their checks."""
