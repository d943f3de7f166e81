"""The command: an MCP server over stdio, or over streamable HTTP."""

from __future__ import annotations

import argparse
import os
from urllib.parse import urlsplit

from checkpoint_mcp.server import make_server

LOOPBACK = "127.0.0.1"


def main() -> None:
    """Serves until its host ends it."""
    parser = argparse.ArgumentParser(prog="checkpoint-mcp", description="MCP server for Checkpoint.")
    parser.add_argument("--http", action="store_true", help="serve streamable HTTP at /mcp instead of stdio")
    parser.add_argument("--host", default=LOOPBACK, help=f"where HTTP listens; {LOOPBACK}")
    parser.add_argument("--port", type=int, default=8765, help="8765")
    options = parser.parse_args()
    url, token = os.environ.get("CHECKPOINT_URL", "").rstrip("/"), os.environ.get("CHECKPOINT_TOKEN", "").strip()
    if urlsplit(url).scheme not in ("http", "https"):
        parser.error("set CHECKPOINT_URL to the console's address, for instance http://127.0.0.1:8000")
    if options.http:
        # Without sessions: each request is answered in the name of the token that it brings, by any process.
        make_server(url, None, "INFO").run(
            "streamable-http", host=options.host, port=options.port, stateless_http=True, json_response=True
        )
    elif token:
        make_server(url, token, "WARNING").run("stdio")
    else:
        parser.error("set CHECKPOINT_TOKEN to a token with the scopes read and submit (manage.py token issue)")


if __name__ == "__main__":
    main()
