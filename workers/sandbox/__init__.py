"""A small real HTTP service and mail server that plays the outside world: for demo and tests, never for production.

`python -m workers.sandbox` serves on loopback. What survives a crash: everything that took effect. Each effect is a
line in an append-only ledger, written before any answer, and the whole state is rebuilt from that file at start.

| provider | same key twice | can be asked |
|---|---|---|
| `/billing/invoices` | one invoice, the original answer again | by key and by number |
| `/tickets` | two tickets | by reference (which may lag) and by number |
| `/charges`, `/refunds` | two effects | no |
| `/documents/{name}` (PUT) | two versions, unless If-Match or If-None-Match forbids | by name |
| `/site/{name}` (PUT) | the page twice, the last one shows | by name and by key |
| the mail server (SMTP) | two messages | at `/mail` by key: what stands before the @ of the Message-ID |

Bodies are JSON or forms. `POST /switch` makes it misbehave (`switch.py`), `GET /ledger` tells tests what happened, `/`
shows it to people.
"""
