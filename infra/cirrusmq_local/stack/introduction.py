"""The account's first key, and the file that tells clients how to connect."""

from __future__ import annotations

from collections.abc import Mapping

from cirrusmq.access import keys
from cirrusmq.base.errors import Unauthenticated
from cirrusmq.wiring import bootstrap
from cirrusmq_local.cloud.functions import Functions
from cirrusmq_local.cloud.template import Template
from cirrusmq_local.stack.data import DataFolder

ACCOUNT = "local"


def introduce(template: Template, functions: Functions, data: DataFolder, url: str) -> None:
    """Make the account's first admin key as in the cloud, and tell clients how to connect."""
    connection = data.read_connection()
    if connection is None or not _is_known(connection):
        manage = next(each.name for each in template.functions if each.folder.name == "manage")
        made = functions.run(manage, {"create_admin_key": {"account": ACCOUNT}})
        connection = {name: made[name] for name in ("account", "access_key_id", "secret")}
    elif connection["url"] == url:
        return
    data.write_connection({**connection, "url": url})


def _is_known(connection: Mapping[str, str]) -> bool:
    """Whether the store knows the connection's key; not where the store was begun anew."""
    key = f"Bearer {connection['access_key_id']}:{connection['secret']}"
    try:
        keys.verify(bootstrap.service(), key)
    except Unauthenticated:
        return False
    return True
