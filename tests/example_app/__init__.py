"""Somebody's own Django app with a tool in it; only `tests/test_registry.py` installs it."""
