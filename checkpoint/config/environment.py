"""Reads settings from the environment and from `.checkpoint/env`, which `make up` writes.

The file exists so that a command typed in another terminal finds the embedded server. It counts only while the
environment names no database: with `DATABASE_URL` set, nothing is read from it.
"""

from __future__ import annotations

import functools
import os
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

BASE_DIR = Path(__file__).resolve().parents[2]
HOME = Path(os.environ.get("CHECKPOINT_HOME") or BASE_DIR / ".checkpoint").resolve()


@functools.cache
def _running_server() -> dict[str, str]:
    """What `.checkpoint/env` says; nothing where the environment names a database itself."""
    file = HOME / "env"
    if os.environ.get("DATABASE_URL") or not file.exists():
        return {}
    pairs = (line.partition("=") for line in file.read_text(encoding="utf-8").splitlines())
    return {name.strip(): value.strip() for name, separator, value in pairs if separator}


def text(name: str, default: str = "") -> str:
    """The variable's value; an empty one counts as not set."""
    return os.environ.get(name) or _running_server().get(name) or default


def flag(name: str, default: bool = False) -> bool:
    """True for 1, true, yes and on, in any case."""
    value = text(name).strip().lower()
    return value in {"1", "true", "yes", "on"} if value else default


def words(name: str, default: str = "") -> list[str]:
    """A comma-separated list."""
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def secret_key() -> str:
    """SECRET_KEY from the environment, else one that is made once and kept for this folder, readable by its owner."""
    if given := text("SECRET_KEY"):
        return given
    file = HOME / "secret_key"
    if not file.exists():
        HOME.mkdir(parents=True, exist_ok=True)
        _write_once(file, secrets.token_urlsafe(50))
    return file.read_text(encoding="utf-8").strip()


def _write_once(file: Path, content: str) -> None:
    """Whoever of several starting processes comes first decides; link() never overwrites."""
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(content, encoding="utf-8")
    try:
        os.link(draft, file)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


POOL_PATIENCE_SECONDS = 10.0  # for so long a request waits for one of its process's connections


def database(url: str, *, pool: int = 0) -> dict[str, Any]:
    """Django's settings for `postgresql://user:password@host:port/name?option=value`; options go to libpq.

    Args:
        pool: the most connections of one process, shared by its threads; 0 for one for each thread.
    """
    parts = urlsplit(url)
    shared = {"min_size": 1, "max_size": pool, "timeout": POOL_PATIENCE_SECONDS}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": str(parts.port or ""),
        "OPTIONS": dict(parse_qsl(parts.query)) | ({"pool": shared} if pool else {}),
        "CONN_HEALTH_CHECKS": bool(pool),
    }


def local_address() -> str:
    """Where the console is on this machine."""
    return f"http://{text('CHECKPOINT_HOST', '127.0.0.1')}:{text('CHECKPOINT_PORT', '8000')}"


def mailers(backend: str) -> dict[str, dict[str, Any]]:
    """Django's MAILERS for the mail server that EMAIL_HOST names; none without it."""
    if not text("EMAIL_HOST"):
        return {}
    options = {
        "host": text("EMAIL_HOST"),
        "port": int(text("EMAIL_PORT", "0")) or None,  # None: by the kind of encryption
        "username": text("EMAIL_HOST_USER"),
        "password": text("EMAIL_HOST_PASSWORD"),
        "use_tls": flag("EMAIL_USE_TLS"),
        "use_ssl": flag("EMAIL_USE_SSL"),
        "timeout": float(text("EMAIL_TIMEOUT", "20")),
    }
    return {"default": {"BACKEND": backend, "OPTIONS": options}}


def storages() -> dict[str, dict[str, Any]]:
    """Django's STORAGES: files, or the bucket that CHECKPOINT_ARTIFACTS_BUCKET names, of any S3-compatible store."""
    static = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    if not text("CHECKPOINT_ARTIFACTS_BUCKET"):
        return {"default": {"BACKEND": "django.core.files.storage.FileSystemStorage"}, "staticfiles": static}
    options = {
        "bucket_name": text("CHECKPOINT_ARTIFACTS_BUCKET"),
        "endpoint_url": text("CHECKPOINT_ARTIFACTS_ENDPOINT") or None,
        "access_key": text("CHECKPOINT_ARTIFACTS_ACCESS_KEY") or None,
        "secret_key": text("CHECKPOINT_ARTIFACTS_SECRET_KEY") or None,
        "region_name": text("CHECKPOINT_ARTIFACTS_REGION") or None,
        "addressing_style": text("CHECKPOINT_ARTIFACTS_ADDRESSING", "auto"),
        "max_memory_size": 1024 * 1024,  # bytes; by default it would hold whole objects in memory
    }
    return {"default": {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": options}, "staticfiles": static}
