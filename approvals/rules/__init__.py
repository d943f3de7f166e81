"""Policies as text and as rules: read, checked, compared, put in force."""
