"""The sandbox provider's port, where it is not the usual one.

Examples and the list of providers are files that name the usual address, so that they can be read and used as they
are. With CHECKPOINT_SANDBOX_PORT set to another port, copies of them that name that one are used instead.
"""

from __future__ import annotations

from pathlib import Path

from checkpoint.config import environment

USUAL_PORT = 7180


def adapted(file: Path, folder: Path) -> Path:
    """The file itself, or its copy in `folder` with the sandbox's present port."""
    port = environment.text("CHECKPOINT_SANDBOX_PORT", str(USUAL_PORT))
    if port == str(USUAL_PORT):
        return file
    copy = folder / file.name
    content = file.read_text(encoding="utf-8")
    copy.write_text(content.replace(f"127.0.0.1:{USUAL_PORT}/", f"127.0.0.1:{port}/"), encoding="utf-8")
    return copy
