"""Things that run. They hold no truth of their own; only this package knows Celery."""
