"""One durable step. Run it as often as you like: the function is called once.

Kill it inside of the function and run it again: it is not called again, and the program is told what people are asked.
"""

from __future__ import annotations

import sys
from pathlib import Path

from checkpoint_client import CheckpointError, Client

CALLS = Path(sys.argv[1] if len(sys.argv) > 1 else "calls.txt")  # stands for the CRM


def main() -> None:
    """A run with one step, and the end of the plan."""
    with Client.from_env() as client:
        run = client.run("crm/2026-11", goal="Raise acme's credit limit.")

        @run.step("default:crm.update")
        def raise_limit(customer: str, limit: int) -> dict[str, int]:
            with CALLS.open("a") as crm:
                crm.write(f"{customer} {limit}\n")
            return {"limit": limit}

        print("the limit is", raise_limit(customer="acme", limit=5000)["limit"])
        run.seal("That was all.")


if __name__ == "__main__":
    try:
        main()
    except CheckpointError as error:
        sys.exit(str(error))
