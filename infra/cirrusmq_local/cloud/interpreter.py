"""One execution of a state machine: moto's interpreter, on the stack's clock and functions.

Three parts of a program are replaced after parsing: waits and the pauses before a retry pass on
the stack's clock (moto's last whole seconds of real time), and calls of Lambda run the function in
this process (moto would make a client for each call).

Import it through `executions`, which leaves out packages that it does not use.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeAlias, cast

from moto.stepfunctions.parser.api import StateMachineType
from moto.stepfunctions.parser.asl.component.eval_component import EvalComponent
from moto.stepfunctions.parser.asl.component.state.exec.state_task.lambda_eval_utils import (
    LambdaFunctionErrorException,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service_lambda import (  # noqa: E501
    StateTaskServiceLambda,
)
from moto.stepfunctions.parser.asl.component.state.wait.state_wait import StateWait
from moto.stepfunctions.parser.asl.component.state.wait.wait_function.wait_function import (
    WaitFunction,
)
from moto.stepfunctions.parser.asl.eval.environment import Environment
from moto.stepfunctions.parser.asl.eval.evaluation_details import AWSExecutionDetails
from moto.stepfunctions.parser.asl.eval.event.event_manager import (
    EventHistoryContext,
    EventManager,
)
from moto.stepfunctions.parser.asl.eval.program_state import ProgramEnded, ProgramError
from moto.stepfunctions.parser.asl.eval.states import (
    ExecutionData,
    StateMachineData,
)
from moto.stepfunctions.parser.asl.parse.asl_parser import AmazonStateLanguageParser
from moto.stepfunctions.parser.asl.parse.preprocessor import Preprocessor
from moto.stepfunctions.parser.utils import TMP_THREADS

from cirrusmq.runtime.clock import Clock
from cirrusmq_local.cloud.clock import ClockStopped
from cirrusmq_local.cloud.cloudformation import ACCOUNT_ID
from cirrusmq_local.cloud.template import REGION

Run: TypeAlias = Callable[[str, Any], Any]

HISTORY_EVENTS = 25_000
"""Step Functions fails an execution whose history has this number of events."""

# moto logs a failure once for each part of the program that it passes through.
logging.getLogger("moto.stepfunctions").setLevel(logging.CRITICAL)


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How an execution ended."""

    status: str
    """SUCCEEDED, FAILED, or ABORTED if the stack ended before the execution."""
    output: Any = None
    error: str | None = None
    events: int


class Interpretation:
    """One execution, run in the thread that calls `run` and one more."""

    def __init__(
        self,
        definition: str,
        *,
        machine_arn: str,
        arn: str,
        given: Any,
        run: Run,
        clock: Clock,
        history_events: int = HISTORY_EVENTS,
    ) -> None:
        self._run = run
        self._clock = clock
        self._stopped = False
        # Each execution has its own program, which is adapted and holds the execution's state.
        self._program = cast(Any, Preprocessor().visit(_parsed(definition)))
        for state in self._program.states.states.values():
            self._adapt(state)
        self._environment = _environment(machine_arn, arn, given)
        self._events = _CountedEvents(self._environment, history_events)
        self._environment.event_manager = self._events

    def run(self) -> Ending:
        """Runs from the first state to the end, without a time limit."""
        self._program.eval(self._environment)
        if self._stopped:
            return Ending(status="ABORTED", events=self._events.count)
        state = cast(Any, self._environment.program_state())
        if isinstance(state, ProgramEnded):
            output = self._environment.states.get_input()
            return Ending(status="SUCCEEDED", output=output, events=self._events.count)
        told = (isinstance(state, ProgramError) and state.error) or {}
        error = f"{told.get('error')}: {told.get('cause')}"
        return Ending(status="FAILED", error=error, events=self._events.count)

    def _adapt(self, state: Any) -> None:
        if isinstance(state, StateWait):
            state.wait_function = _Wait(state.wait_function, self._let_pass)
        if isinstance(state, StateTaskServiceLambda):
            cast(Any, state)._eval_service_task = self._call
        for retrier in getattr(getattr(state, "retry", None), "retriers", ()):
            # The last place that can change the seconds that moto is about to sleep.
            retrier.jitter_strategy = _Pause(retrier.jitter_strategy, self._let_pass)

    def _let_pass(self, seconds: float) -> None:
        try:
            self._clock.sleep(seconds)
        except ClockStopped:
            self._stop()

    def _stop(self) -> None:
        # The program's own state has this too, until an error that the stop causes overwrites it.
        self._stopped = True
        self._environment.set_stop(stop_date=datetime.now(UTC), error=None, cause=None)

    def _call(self, env: Any, normalised_parameters: dict[str, Any], **_: Any) -> None:
        """Invokes a function and pushes its answer, in the form of Lambda's API."""
        # moto collects its threads in this list, and never reads or empties it.
        TMP_THREADS.clear()
        try:
            answer = self._run(
                normalised_parameters["FunctionName"], json.loads(normalised_parameters["Payload"])
            )
        except ClockStopped:
            self._stop()
            raise LambdaFunctionErrorException("Unhandled", "{}") from None
        except Exception as error:
            told = {"errorType": type(error).__name__, "errorMessage": str(error)}
            raise LambdaFunctionErrorException("Unhandled", json.dumps(told)) from error
        # Through JSON, as in the cloud: an answer that is no JSON must not work here either.
        env.stack.append({"StatusCode": 200, "Payload": json.loads(json.dumps(answer))})


@lru_cache(maxsize=8)
def _parsed(definition: str) -> Any:
    """Returns a definition's tree. Parsing is three quarters of the time to make a program."""
    return AmazonStateLanguageParser.parse(definition)[1]


class _Wait(WaitFunction):
    """A wait on the stack's clock."""

    def __init__(self, asked: Any, let_pass: Callable[[float], None]) -> None:
        self._asked = asked
        self._let_pass = let_pass

    def _get_wait_seconds(self, env: Any) -> Any:
        return self._asked._get_wait_seconds(env)

    def _wait_interval(self, env: Any, wait_seconds: float) -> None:
        self._let_pass(wait_seconds)


class _Pause(EvalComponent):
    """Waits before a retry on the stack's clock, and leaves moto zero seconds."""

    def __init__(self, jitter: Any, let_pass: Callable[[float], None]) -> None:
        self._jitter = jitter
        self._let_pass = let_pass

    def _eval_body(self, env: Any) -> None:
        self._jitter.eval(env)
        self._let_pass(env.stack.pop())
        env.stack.append(0)


class _CountedEvents(EventManager):
    """Counts the events of an execution and drops them: they would take megabytes each day."""

    def __init__(self, environment: Any, limit: int) -> None:
        super().__init__()
        self.count = 0
        self._environment = environment
        self._limit = limit

    def _publish_history_event(self, event_id: int, *_: Any, **__: Any) -> None:
        self.count = event_id
        if event_id == self._limit:
            cause = f"the history of an execution ends at {self._limit:,} events"
            self._environment.set_error({"error": "States.Runtime", "cause": cause})


def _environment(machine_arn: str, arn: str, given: Any) -> Any:
    started = datetime.now(UTC).isoformat()
    execution = ExecutionData(
        Id=arn, Input=given, Name=arn.rpartition(":")[2], RoleArn="", StartTime=started
    )
    machine = StateMachineData(Id=machine_arn, Name=machine_arn.rpartition(":")[2])
    context: Any = {"Execution": execution, "StateMachine": machine}
    return Environment(
        aws_execution_details=AWSExecutionDetails(account=ACCOUNT_ID, region=REGION, role_arn=""),
        execution_type=StateMachineType.STANDARD,
        context=context,
        event_history_context=EventHistoryContext.of_program_start(),
        cloud_watch_logging_session=None,
        activity_store={},
    )
