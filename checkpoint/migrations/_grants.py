"""For migrations: gives permissions to groups before `post_migrate` has made either."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.apps.registry import Apps
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

Grants = Mapping[str, tuple[str, ...]]


def give(
    app_label: str, model: str, names: Mapping[str, str], grants: Grants
) -> Callable[[Apps, BaseDatabaseSchemaEditor], None]:
    """A data migration that adds to each group in `grants` the permissions of one model.

    Args:
        names: each permission's codename with its name, as in the model's Meta.
        grants: each group with the codenames it gets; groups that do not exist are made.
    """

    def run(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
        content_type, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
            app_label=app_label, model=model
        )
        for group_name, codenames in grants.items():
            group, _ = apps.get_model("auth", "Group").objects.get_or_create(name=group_name)
            for codename in codenames:
                permission, _ = apps.get_model("auth", "Permission").objects.get_or_create(
                    content_type=content_type, codename=codename, defaults={"name": names[codename]}
                )
                group.permissions.add(permission)

    return run
