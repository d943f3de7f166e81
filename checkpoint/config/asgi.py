"""The web application, for uvicorn."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "checkpoint.config.settings")
os.environ.setdefault("CHECKPOINT_DATABASE_POOL", "12")
application = get_asgi_application()
