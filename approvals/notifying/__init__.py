"""Telling people: who is told what and when, and what became of each notice."""
