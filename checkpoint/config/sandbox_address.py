"""The sandbox's ports, where they are not the usual ones.

Examples and the operator's lists are files that name the usual addresses, so that they can be read and used as they
are. With CHECKPOINT_SANDBOX_PORT or CHECKPOINT_SANDBOX_MAIL_PORT set to another port, copies of them that name that one
are used instead.
"""

from __future__ import annotations

from pathlib import Path

from checkpoint.config import environment

USUAL_PORT, USUAL_MAIL_PORT = 7180, 7125


def adapted(file: Path, folder: Path) -> Path:
    """The file itself, or its copy in `folder` with the sandbox's present ports."""
    content = file.read_text(encoding="utf-8")
    port = environment.text("CHECKPOINT_SANDBOX_PORT", str(USUAL_PORT))
    mail_port = environment.text("CHECKPOINT_SANDBOX_MAIL_PORT", str(USUAL_MAIL_PORT))
    present = content.replace(f"127.0.0.1:{USUAL_PORT}/", f"127.0.0.1:{port}/")
    present = present.replace(f"port = {USUAL_MAIL_PORT}\n", f"port = {mail_port}\n")
    if (port, mail_port) == (str(USUAL_PORT), str(USUAL_MAIL_PORT)):
        return file
    copy = folder / file.name
    copy.write_text(present, encoding="utf-8")
    return copy
