"""The account's first key, and the file with which clients connect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cirrusmq.access import keys
from cirrusmq.base.errors import Unauthenticated
from cirrusmq.wiring import bootstrap
from cirrusmq_local.cloud.functions import Functions
from cirrusmq_local.cloud.template import Template
from cirrusmq_local.stack.data import DataFolder

ACCOUNT = "local"


def introduce(
    template: Template,
    functions: Functions,
    data: DataFolder,
    url: str,
    dialect_url: str | None,
    *,
    sealed_anew: bool,
) -> None:
    """Makes the account's first admin key as in the cloud, and writes the clients' connection.

    Makes a signing key, too, for the SDKs of other services. `sealed_anew`: the file that decrypts
    the secrets of signing keys is new, so that earlier signing keys are useless.
    """
    before = data.read_connection()
    connection: dict[str, Any] = dict(before or {})
    connection.pop("dialect_url", None)
    if before is None or not _is_known(before):
        manage = next(each.name for each in template.functions if each.folder.name == "manage")
        made = functions.run(manage, {"create_admin_key": {"account": ACCOUNT}})
        connection |= {name: made[name] for name in ("account", "access_key_id", "secret")}
    signing = connection.get("signing_key")
    if signing is None or sealed_anew or not _is_known(signing):
        rights = keys.KeyRights(manages_keys=False)
        key, secret = keys.create_key(bootstrap.service(), ACCOUNT, rights, signing=True)
        connection["signing_key"] = {"access_key_id": key.id, "secret": secret}
    connection["url"] = url
    if dialect_url is not None:
        connection["dialect_url"] = dialect_url
    if connection != before:
        data.write_connection(connection)


def _is_known(connection: Mapping[str, Any]) -> bool:
    """Returns True if the store knows the connection's key; a new store does not."""
    key = f"Bearer {connection['access_key_id']}:{connection['secret']}"
    try:
        keys.verify(bootstrap.service(), key)
    except Unauthenticated:
        return False
    return True
