"""Faults of a deployment in an account: a function stopped, a table held back, an older version.

Each reads the setting, writes into the journal how to set it again, and only then changes it. The
undoing sets exactly that: a function without reserved concurrency has none again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from cirrusmq_local.verifying.journal import Journal, Step

STOP_SECONDS = 5.0
ALIAS_SECONDS = 5.0
LOWERED_SECONDS = 60.0
NO_MAXIMUM = -1
"""DynamoDB's value for a table without a maximum of units."""
_MAX_WAITS = 60


class Account:
    """The functions and tables of one stack."""

    def __init__(
        self,
        functions: Any,
        tables: Any,
        journal: Journal,
        sleep: Callable[[float], object] = time.sleep,
        retry_sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        """functions, tables: clients of Lambda and DynamoDB. sleep: waits while a fault lasts.

        retry_sleep: waits between tries to change a table, also when a run ends early.
        """
        self._functions, self._tables, self._journal = functions, tables, journal
        self._sleep, self._retry_sleep = sleep, retry_sleep

    def stop(self, function: str) -> None:
        """No call of a function is let in for 5 s."""
        told = self._functions.get_function_concurrency(FunctionName=function)
        was = told.get("ReservedConcurrentExecutions")
        step = {"kind": "concurrency", "function": function, "was": was}
        self._make(
            step,
            lambda: self._functions.put_function_concurrency(
                FunctionName=function, ReservedConcurrentExecutions=0
            ),
            STOP_SECONDS,
        )

    def lower(self, table: str, write_units: int) -> None:
        """A table on demand takes fewer units for a minute."""
        held = self._tables.describe_table(TableName=table)["Table"]
        limit = held.get("OnDemandThroughput") or {}
        was = {
            name: limit.get(name, NO_MAXIMUM)
            for name in ("MaxReadRequestUnits", "MaxWriteRequestUnits")
        }
        step = {"kind": "maximum", "table": table, "was": was}
        lower = {**was, "MaxWriteRequestUnits": write_units}
        self._make(step, lambda: self._limit(table, lower), LOWERED_SECONDS)

    def lower_of(self, function: str, write_units: int) -> None:
        """The same for the table of messages in a function's environment."""
        told = self._functions.get_function_configuration(FunctionName=function)
        self.lower(told["Environment"]["Variables"]["MESSAGES_TABLE"], write_units)

    def move_alias(self, function: str, alias: str = "live") -> None:
        """The alias is on the version before for some seconds; nothing is done without one."""
        was = self._functions.get_alias(FunctionName=function, Name=alias)["FunctionVersion"]
        pages = self._functions.get_paginator("list_versions_by_function")
        found = [
            int(each["Version"])
            for page in pages.paginate(FunctionName=function)
            for each in page["Versions"]
            if each["Version"].isdigit()
        ]
        earlier = [number for number in found if was.isdigit() and number < int(was)]
        if not earlier:
            return
        step = {"kind": "alias", "function": function, "alias": alias, "was": was}
        self._make(
            step,
            lambda: self._functions.update_alias(
                FunctionName=function, Name=alias, FunctionVersion=str(max(earlier))
            ),
            ALIAS_SECONDS,
        )

    def undoing(self) -> Mapping[str, Callable[[Step], None]]:
        """How the steps of a journal are undone."""
        return {
            "concurrency": self._restore_concurrency,
            "maximum": lambda step: self._limit(step["table"], step["was"]),
            "alias": lambda step: self._functions.update_alias(
                FunctionName=step["function"],
                Name=step["alias"],
                FunctionVersion=step["was"],
            ),
        }

    def _make(self, step: Step, fault: Callable[[], object], seconds: float) -> None:
        number = self._journal.note(step)
        try:
            fault()
            self._sleep(seconds)
        finally:
            self.undoing()[step["kind"]](step)
            self._journal.done(number)

    def _restore_concurrency(self, step: Step) -> None:
        function, was = step["function"], step["was"]
        if was is None:
            self._functions.delete_function_concurrency(FunctionName=function)
            return
        self._functions.put_function_concurrency(
            FunctionName=function, ReservedConcurrentExecutions=was
        )

    def _limit(self, table: str, limit: Mapping[str, int]) -> None:
        """Set the maximum units of a table, as soon as no other change of it is under way."""
        for _ in range(_MAX_WAITS):
            try:
                self._tables.update_table(TableName=table, OnDemandThroughput=dict(limit))
                return
            except self._tables.exceptions.ResourceInUseException:
                self._retry_sleep(5)
        self._tables.update_table(TableName=table, OnDemandThroughput=dict(limit))
