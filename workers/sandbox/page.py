"""The ledger as a page: where a person looks whether a charge happened."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from html import escape

from workers.sandbox.ledger import Effect
from workers.sandbox.providers import MAIL

MOST = 500  # rows of a table

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Sandbox provider</title><style>
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; color: #1c1c1c; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; padding: .4rem .6rem; vertical-align: top; border-bottom: 1px solid #ccc; }}
code {{ font-size: .85em; overflow-wrap: anywhere; }}
input, button {{ font: inherit; }} input {{ width: 30rem; max-width: 60vw; }}
</style></head><body>
<h1>Sandbox provider</h1>
<p>What really happened at this provider, read from its own ledger. It plays the outside world in demo and tests.</p>
<form action="/" method="get"><label>Key, number, reference or text: <input name="find" value="{find}"></label>
<button>Find</button></form>
<p role="status">{summary}</p>
<table><thead><tr><th>When (UTC)</th><th>What</th><th>Number</th><th>Reference</th><th>Content</th><th>Key</th></tr>
</thead><tbody>{rows}</tbody></table>
<h2>Mailbox</h2>
<p>What its mail server took, newest first. It sends nothing on.</p>
<table><thead><tr><th>When (UTC)</th><th>From</th><th>To</th><th>Subject</th><th>Text</th><th>Key</th></tr>
</thead><tbody>{mails}</tbody></table>
</body></html>
"""


def ledger_page(effects: Iterable[Effect], find: str) -> str:
    """HTML of the effects that contain `find`, newest first."""
    shown = [effect for effect in effects if find in _text(effect)]
    summary = f"{len(shown)} {'effect' if len(shown) == 1 else 'effects'}" + (f" with “{find}”" if find else "")
    mails = [effect for effect in shown if effect.kind == MAIL.kind]
    rows = "".join(_row(effect) for effect in reversed([one for one in shown if one.kind != MAIL.kind][-MOST:]))
    mailbox = "".join(_mail_row(effect) for effect in reversed(mails[-MOST:]))
    return _PAGE.format(find=escape(find, quote=True), summary=escape(summary), rows=rows, mails=mailbox)


def _text(effect: Effect) -> str:
    return " ".join([effect.kind, effect.number, effect.key or "", effect.reference or "", json.dumps(effect.body)])


def _mail_row(effect: Effect) -> str:
    mail = effect.body
    cells = [mail["from"], ", ".join(mail["recipients"]), mail["subject"], mail["text"], effect.key or ""]
    return f"<tr><td>{_when(effect)}</td>{''.join(f'<td><code>{escape(text)}</code></td>' for text in cells)}</tr>"


def _when(effect: Effect) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(effect.at))


def _row(effect: Effect) -> str:
    code = [effect.number, effect.reference or "", json.dumps(effect.body, ensure_ascii=False), effect.key or ""]
    cells = "".join(f"<td><code>{escape(text)}</code></td>" for text in code)
    return f"<tr><td>{_when(effect)}</td><td>{escape(effect.kind)}</td>{cells}</tr>"
