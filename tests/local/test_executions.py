"""Step Functions on one machine: the deployed state machine, over handlers that a test writes."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.local.conftest import run_with

from cirrusmq_local.cloud import executions
from cirrusmq_local.cloud.aws import make_session
from cirrusmq_local.cloud.clock import ClockStopped, ScaledClock
from cirrusmq_local.cloud.executions import ExecutionExistsError, Executions
from cirrusmq_local.cloud.functions import Functions
from cirrusmq_local.cloud.template import StateMachine
from cirrusmq_local.testing import ManualClock

ARN = "arn:aws:states:local:000000000000:stateMachine:retry"
DEFINITION = (
    Path(__file__).resolve().parents[2] / "infra/statemachines/retry_schedule.asl.json"
).read_text()
GIVEN: dict[str, Any] = {
    "action": "again",
    "wait_seconds": 0,
    "retry": {"topic_id": "t", "subscription": "s", "generation": 1, "rounds": 0},
}

Answers = Callable[[Any], Any]


class Machine:
    """The state machine, with a `push` that answers as a test says."""

    def __init__(
        self, push: Answers, definition: str = DEFINITION, clock: Any = None, arn: str = ARN
    ) -> None:
        self.clock = clock or ManualClock()
        self.given: list[Any] = []
        self.journal = io.StringIO()
        self._push = push
        text = definition.replace("${PushFunction}", "push")
        machine = StateMachine(logical_id="Retry", arn=arn, definition=text)
        self.executions = Executions([machine], self._run, self.clock, self.journal)

    def _run(self, name: str, event: Any) -> Any:
        assert name == "push"
        self.given.append(event)
        return self._push(event)

    def start(self, name: str = "s-1", given: Any = GIVEN) -> str:
        return self.executions.start(ARN, name, json.dumps(given))

    def finish(self) -> list[str]:
        """Let what runs end; the states that the journal tells, in order."""
        for thread in list(self.executions._threads.values()):
            thread.join(60)
        return [json.loads(line)["status"] for line in self.journal.getvalue().splitlines()]


def answers(*sequence: Any) -> Answers:
    """Answers one after the other; an exception is raised."""
    left = iter(sequence)

    def answer(event: Any) -> Any:
        given = next(left)
        if isinstance(given, Exception):
            raise given
        return given

    return answer


def after(action: str, wait_seconds: int = 0, rounds: int = 1) -> dict[str, Any]:
    retry = {**GIVEN["retry"], "rounds": rounds}
    return {"action": action, "wait_seconds": wait_seconds, "retry": retry}


def test_push_gets_the_input_and_then_each_of_its_own_answers() -> None:
    machine = Machine(answers(after("wait", 5), after("again", 0, 2), after("done", 0, 3)))
    machine.start()
    assert machine.finish() == ["RUNNING", "SUCCEEDED"]
    assert machine.given == [GIVEN, after("wait", 5), after("again", 0, 2)]


def test_a_wait_passes_on_the_stacks_clock() -> None:
    machine = Machine(answers(after("wait", 5), after("wait", 43_200), after("done")))
    began = machine.clock.now_ms()
    machine.start()
    machine.finish()
    assert machine.clock.now_ms() - began == 43_205_000


@pytest.mark.alone
def test_a_wait_is_divided_by_the_scale(tmp_path: Path) -> None:
    clock = ScaledClock(tmp_path / "clock.json", 1_000)
    machine = Machine(answers(after("wait", 500), after("done")), clock=clock)
    machine.executions.warm_up()
    began = clock.now_ms()
    machine.start()
    machine.finish()
    assert 500_000 <= clock.now_ms() - began < 900_000


TOO_MANY = type("Lambda.TooManyRequestsException", (Exception,), {})


@pytest.mark.parametrize(
    ("sequence", "calls"),
    [
        pytest.param([after("again"), ValueError("told to fail")], 2, id="an error of push"),
        pytest.param([{"action": "done", "odd": {1, 2}}], 1, id="an answer that cannot travel"),
        pytest.param([*(TOO_MANY() for _ in range(3)), after("done")], 4, id="Lambda's refusal"),
    ],
)
def test_an_error_of_push_ends_the_execution_and_one_of_lambda_is_tried_again(
    sequence: list[Any], calls: int
) -> None:
    """Without failing it in either case."""
    machine = Machine(answers(*sequence))
    machine.start()
    assert machine.finish() == ["RUNNING", "SUCCEEDED"]
    assert len(machine.given) == calls


@pytest.mark.parametrize("rounds", [100, pytest.param(1_500, marks=pytest.mark.long)])
def test_many_rounds_end_before_the_history_is_full(rounds: int) -> None:
    sequence = [after("wait", 60, n) for n in range(rounds)]
    machine = Machine(answers(*sequence, after("done")))
    began = machine.clock.now_ms()
    machine.start()
    assert machine.finish() == ["RUNNING", "SUCCEEDED"]
    assert len(machine.given) == rounds + 1
    assert machine.clock.now_ms() - began == rounds * 60_000


def test_a_too_long_history_fails_the_execution() -> None:
    given: list[Any] = []

    def push(name: str, event: Any) -> Any:
        given.append(event)
        return after("wait", 1)

    interpretation = executions.import_interpreter().Interpretation(
        DEFINITION,
        machine_arn=ARN,
        arn=ARN + ":s-1",
        given=GIVEN,
        run=push,
        clock=ManualClock(),
        history_events=500,
    )
    ending = interpretation.run()
    assert ending.status == "FAILED"
    assert "500 events" in ending.error
    # Each round takes nine events; the rest begin and end the execution.
    assert len(given) == 500 // 9 + 1


def test_an_unreadable_definition_fails_the_execution(
    caplog: pytest.LogCaptureFixture,
) -> None:
    machine = Machine(answers(), definition='{"StartAt": "Nowhere"}')
    machine.start()
    assert machine.finish() == ["RUNNING", "FAILED"]
    assert "failed" in caplog.text


def test_one_execution_runs_under_a_name() -> None:
    go_on = threading.Event()

    def push(event: Any) -> Any:
        go_on.wait(30)
        return after("done")

    machine = Machine(push)
    first = machine.start()
    assert first.endswith(":execution:retry:s-1")
    assert machine.start() == first
    assert machine.executions.running == [first]
    with pytest.raises(ExecutionExistsError):
        machine.start(given={"retry": {}})
    go_on.set()
    machine.finish()
    assert machine.executions.running == []
    with pytest.raises(ExecutionExistsError):
        machine.start()
    assert len(machine.given) == 1


def test_malformed_json_is_refused() -> None:
    machine = Machine(answers())
    with pytest.raises(ValueError, match="Expecting"):
        machine.executions.start(ARN, "name", "{")


class WaitingClock(ManualClock):
    """A clock on which a sleep lasts until the clock is stopped."""

    def __init__(self) -> None:
        super().__init__()
        self.asleep = threading.Event()
        self.ended = threading.Event()

    def sleep(self, seconds: float) -> None:
        self.asleep.set()
        self.ended.wait(30)
        raise ClockStopped


@pytest.fixture
def waiting() -> Iterator[WaitingClock]:
    clock = WaitingClock()
    yield clock
    clock.ended.set()


@pytest.mark.parametrize("where", ["waiting", "pushing"])
def test_a_stop_ends_an_execution_wherever_it_is(
    where: str, waiting: WaitingClock, capfd: pytest.CaptureFixture[str]
) -> None:
    def push(event: Any) -> Any:
        if where == "pushing":
            waiting.sleep(1)
        return after("wait", 3_600)

    machine = Machine(push, clock=waiting)
    machine.start()
    assert waiting.asleep.wait(30)
    waiting.ended.set()
    machine.executions.stop()
    assert machine.executions.running == []
    assert machine.finish() == ["RUNNING", "ABORTED"]
    assert len(machine.given) == 1
    machine.start("later")
    assert machine.executions.running == []
    assert capfd.readouterr().err == ""


@pytest.mark.long
def test_hundreds_of_executions_run_side_by_side() -> None:
    together = threading.Barrier(200, timeout=30)

    def push(event: Any) -> Any:
        together.wait()
        return after("done")

    machine = Machine(push)
    for number in range(200):
        machine.start(f"s-{number}")
    assert machine.finish().count("SUCCEEDED") == 200


# --------------------------------------------------------------------------- through the client


def call(machine: Machine, handler: Callable[[Any], Any], allowed: str = ARN) -> Any:
    """The result of a function's call with a Step Functions client of its own."""
    session = make_session(lambda: Functions({}), lambda: machine.executions)
    client = session.create_client("stepfunctions")
    return run_with({allowed: {"states:StartExecution": ("",)}}, lambda: handler(client))


def test_the_product_starts_an_execution() -> None:
    machine = Machine(answers(after("done")))
    answer = call(
        machine,
        lambda client: client.start_execution(
            stateMachineArn=ARN, name="s-1", input=json.dumps(GIVEN)
        ),
    )
    assert answer["executionArn"].endswith(":execution:retry:s-1")
    assert machine.finish() == ["RUNNING", "SUCCEEDED"]
    assert machine.given == [GIVEN]


@pytest.mark.parametrize(
    ("asked", "allowed", "error", "said"),
    [
        (ARN, ARN, "ExecutionAlreadyExists", "ExecutionAlreadyExists"),
        (ARN + "x", ARN + "x", "StateMachineDoesNotExist", "StateMachineDoesNotExist"),
        (ARN, ARN + "-other", "ClientError", "not allowed states:Start"),
    ],
    ids=["a name that was used", "no state machine", "not allowed"],
)
def test_a_refused_start_is_the_clients_error(
    asked: str, allowed: str, error: str, said: str
) -> None:
    machine = Machine(answers(after("done")))
    if error == "ExecutionAlreadyExists":
        machine.start()
        machine.finish()

    def start(client: Any) -> None:
        with pytest.raises(getattr(client.exceptions, error), match=said):
            client.start_execution(stateMachineArn=asked, name="s-1", input=json.dumps({"a": 1}))

    call(machine, start, allowed)
    assert machine.executions.running == []


@pytest.mark.long
def test_the_interpreter_comes_without_unused_modules() -> None:
    code = (
        "import sys; from cirrusmq_local.cloud import executions; executions.import_interpreter();"
        "assert 'moto.ec2' not in sys.modules and 'moto.batch' not in sys.modules;"
        "import moto.batch; moto.batch.models"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_stack_starts_without_the_interpreter() -> None:
    code = "import sys, cirrusmq_local.stack.stack; assert 'moto' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
