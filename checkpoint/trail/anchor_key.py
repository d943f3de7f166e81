"""The Ed25519 key that signs audit anchors: the file that the setting names, or one that is made once and kept.

Every host that signs needs the same file, or anchors name several keys. Whoever checks an export compares the key that
it names with one that was noted down elsewhere.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.conf import settings

from checkpoint.errors import AnchorKeyUnusable

GENERATED = "anchor_key.pem"


def load() -> Ed25519PrivateKey:
    """The signing key. Raises AnchorKeyUnusable."""
    named = settings.CHECKPOINT_ANCHOR_KEY
    file = Path(named) if named else Path(settings.CHECKPOINT_HOME) / GENERATED
    if not named and not file.exists():
        _make(file)
    try:
        key = serialization.load_pem_private_key(file.read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise AnchorKeyUnusable(f"{file} cannot be read as a private key ({error}); {_REMEDY}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise AnchorKeyUnusable(f"{file} holds another kind of key; {_REMEDY}")
    return key


_REMEDY = "make one with `openssl genpkey -algorithm ed25519 -out FILE` and name it in CHECKPOINT_ANCHOR_KEY."


def public_text(key: Ed25519PrivateKey) -> str:
    """The public half as 64 hexadecimal digits."""
    return key.public_key().public_bytes_raw().hex()


def signed_by(public: str, text: str, signature: str) -> bool:
    """Whether the holder of the public key (hexadecimal) signed the text."""
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), text.encode())
    except (InvalidSignature, ValueError):
        return False
    return True


def _make(file: Path) -> None:
    """Whoever of several processes comes first decides: link() never overwrites, and nobody reads half a file."""
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
            stream.write(pem)
        os.link(draft, file)
    except FileExistsError:
        pass
    except OSError as error:
        raise AnchorKeyUnusable(f"{file} cannot be written ({error.strerror}); {_REMEDY}") from error
    finally:
        draft.unlink(missing_ok=True)
