"""docs/roles.md says what the migrations gave to each group, in the words of the permissions themselves."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission

from checkpoint.config.environment import BASE_DIR

pytestmark = pytest.mark.usefixtures("database")

GROUPS = ("Operator", "Approver", "Auditor", "Admin", "Agent")
APPS = ("approvals", "checkpoint", "workers")
_OF_DJANGO = ("add", "change", "delete", "view")  # which it makes for each model; nothing here asks for them


def own_permissions() -> list[Permission]:
    """The permissions that this product's models declare."""
    all_of_ours = Permission.objects.filter(content_type__app_label__in=APPS).select_related("content_type")
    return [
        permission
        for permission in all_of_ours.order_by("content_type__app_label", "codename")
        if permission.codename not in {f"{word}_{permission.content_type.model}" for word in _OF_DJANGO}
    ]


def table() -> list[str]:
    """The table as the database has it."""
    holders = {name: set(Group.objects.get(name=name).permissions.values_list("pk", flat=True)) for name in GROUPS}
    lines = [f"| permission | what it allows | {' | '.join(GROUPS)} |", f"|---|---|{':-:|' * len(GROUPS)}"]
    for permission in own_permissions():
        marks = " | ".join("✓" if permission.pk in holders[name] else "" for name in GROUPS)
        name = f"`{permission.content_type.app_label}.{permission.codename}`"
        lines.append(f"| {name} | {permission.name} | {marks} |".replace("|  ", "| "))
    return lines


def test_the_page_has_the_table_of_the_database() -> None:
    page = (BASE_DIR / "docs" / "roles.md").read_text(encoding="utf-8")
    shown = [line for line in page.splitlines() if line.startswith("|")]
    assert shown == table(), "the table in docs/roles.md should be:\n" + "\n".join(table())


def test_groups_hold_nothing_else() -> None:
    own = {permission.pk for permission in own_permissions()}
    for group in Group.objects.all():
        assert group.name in GROUPS, f"{group.name} is not in docs/roles.md"
        assert set(group.permissions.values_list("pk", flat=True)) <= own
