"""Step Functions in one process: executions of the template's state machines, in memory.

They end with the stack. Their state is in the store, and the sweep starts them again.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from io import TextIOBase
from typing import TYPE_CHECKING, Any

from cirrusmq.runtime.clock import Clock
from cirrusmq_local.cloud.template import StateMachine

if TYPE_CHECKING:
    from cirrusmq_local.cloud.interpreter import Ending

NAMES_KEPT = 100_000
"""Number of names that are kept; Step Functions keeps the names of executions for 90 days."""

_log = logging.getLogger(__name__)


class UnknownStateMachineError(Exception):
    """No state machine of this ARN is in the template."""


class ExecutionExistsError(Exception):
    """An execution of this name has ended, or has another input."""


class Executions:
    """Executions by name, each in its own thread."""

    def __init__(
        self,
        machines: Sequence[StateMachine],
        run: Callable[[str, Any], Any],
        clock: Clock,
        journal: TextIOBase,
    ) -> None:
        self._machines = {machine.arn: machine for machine in machines}
        self._run = run
        self._clock = clock
        self._journal = journal
        self._lock = threading.Lock()
        self._given: OrderedDict[str, str] = OrderedDict()
        self._threads: dict[str, threading.Thread] = {}
        self._stopping = False

    @property
    def running(self) -> list[str]:
        """ARNs of the executions that have not ended."""
        with self._lock:
            return list(self._threads)

    def find(self, machine_arn: str) -> StateMachine:
        """Returns the state machine of an ARN. Raises UnknownStateMachineError."""
        if machine_arn not in self._machines:
            raise UnknownStateMachineError(f"the template has no state machine {machine_arn}")
        return self._machines[machine_arn]

    def start(self, machine_arn: str, name: str, given: str) -> str:
        """Starts an execution. Returns its ARN, also for the same name and input while it runs.

        Raises UnknownStateMachineError, ExecutionExistsError, or ValueError if the input is not
        JSON.
        """
        machine = self.find(machine_arn)
        value = json.loads(given)
        arn = f"{machine_arn.replace(':stateMachine:', ':execution:')}:{name}"
        with self._lock:
            if arn in self._given:
                if arn in self._threads and self._given[arn] == given:
                    return arn
                raise ExecutionExistsError(f"the execution {name} exists")
            if self._stopping:
                return arn
            self._given[arn] = given
            while len(self._given) > NAMES_KEPT:
                self._given.popitem(last=False)
            thread = threading.Thread(
                target=self._execute, args=(machine, arn, value), name=name, daemon=True
            )
            self._threads[arn] = thread
            thread.start()
        return arn

    def warm_up(self) -> None:
        """Imports the interpreter, so that the first execution does not wait for it."""
        if self._machines:
            import_interpreter()

    def stop(self) -> None:
        """Waits for running executions to end. Stop the clock before."""
        with self._lock:
            self._stopping = True
            threads = list(self._threads.values())
        for thread in threads:
            thread.join()

    def _execute(self, machine: StateMachine, arn: str, given: Any) -> None:
        self._note(arn, "RUNNING")
        status = "FAILED"
        try:
            ending = self._interpret(machine, arn, given)
            status = ending.status
            if ending.error is not None:
                _log.error("execution %s failed: %s", arn, ending.error)
        except Exception:
            _log.exception("execution %s failed", arn)
        finally:
            with self._lock:
                del self._threads[arn]
            self._note(arn, status)

    def _interpret(self, machine: StateMachine, arn: str, given: Any) -> Ending:
        interpretation = import_interpreter().Interpretation(
            machine.definition,
            machine_arn=machine.arn,
            arn=arn,
            given=given,
            run=self._run,
            clock=self._clock,
        )
        ending: Ending = interpretation.run()
        return ending

    def _note(self, arn: str, status: str) -> None:
        """Writes one line to the journal for each beginning and end."""
        line = {"execution": arn, "status": status, "at_ms": self._clock.now_ms()}
        self._journal.write(json.dumps(line) + "\n")


_importing = threading.Lock()


def import_interpreter() -> Any:
    """Imports the interpreter without EC2, which would cost 0.8 s and 130 MB.

    The interpreter needs the states of Batch's jobs, from a module whose package imports EC2. So
    that package is found but not run, and only the module is imported.
    """
    with _importing:
        left_out = "moto.batch" not in sys.modules
        if left_out:
            spec = importlib.util.find_spec("moto.batch")
            assert spec is not None
            sys.modules["moto.batch"] = importlib.util.module_from_spec(spec)
        try:
            from cirrusmq_local.cloud import interpreter
        finally:
            if left_out:
                del sys.modules["moto.batch"]
        return interpreter
