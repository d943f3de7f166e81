"""Bytes of artifacts: stored once, shown in part, handed out in chunks."""
