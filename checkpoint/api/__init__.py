"""The REST API: each view translates a request, calls one verb or one read, and translates the answer back."""
