"""The bucket of the messages of large sends on one machine: the template's, guarded, kept."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from tests.local.conftest import run_with
from tests.stack import START_SECONDS, Start, environment

from cirrusmq.wiring.bucket import Bucket, make_s3
from cirrusmq_local.cloud.aws import NotOnOneMachineError, isolate_environment, make_session
from cirrusmq_local.cloud.buckets import bodies_bucket, open_bucket
from cirrusmq_local.cloud.cloudformation import TemplateError
from cirrusmq_local.cloud.functions import Functions
from cirrusmq_local.cloud.guard import GuardedBucket
from cirrusmq_local.cloud.permissions import Permissions
from cirrusmq_local.cloud.template import Template, load
from cirrusmq_local.testing import World

ROOT = Path(__file__).resolve().parents[2]
KEY = "d01/1f3/an id"
S3 = "s3.local.amazonaws.com"
ANY, THROUGH_S3 = ("",), (S3,)
READ: Permissions = {
    "Bodies.Arn/*": {"s3:GetObject": ANY},
    "Bodies.Arn": {"s3:ListBucket": ANY},
    "Key.Arn": {"kms:Decrypt": THROUGH_S3},
}
WRITE: Permissions = {
    "Bodies.Arn/*": {"s3:PutObject": ANY},
    "Key.Arn": {"kms:GenerateDataKey": THROUGH_S3},
}
DAY_SECONDS = 86_400


@pytest.fixture(scope="module")
def template() -> Template:
    return load(ROOT / "template.yaml")


class Stand:
    """Uses the bucket inside a function that has the permissions a test gives it."""

    def __init__(self, template: Template) -> None:
        isolate_environment()
        declaration = bodies_bucket(template)
        self.bucket = open_bucket(declaration, None, lambda: 0)
        session = make_session(
            lambda: Functions({}), bucket=GuardedBucket(self.bucket, declaration)
        )
        self.session = session
        self.bodies = Bucket(partial(make_s3, session), declaration.name, lambda seconds: None)

    def run(self, operation: str, *arguments: Any, allowed: Permissions) -> Any:
        def handler() -> Any:
            answer = getattr(self.bodies, operation)(*arguments)
            return answer.decode() if isinstance(answer, bytes) else answer

        return run_with(allowed, handler)


@pytest.fixture
def stand(template: Template) -> Stand:
    return Stand(template)


def without(permissions: Permissions, target: str) -> Permissions:
    return {name: held for name, held in permissions.items() if name != target}


def both() -> Permissions:
    return {
        name: {**READ.get(name, {}), **WRITE.get(name, {})} for name in READ.keys() | WRITE.keys()
    }


def test_allowed_operations_are_done(stand: Stand) -> None:
    stand.run("put", KEY, b"one", allowed=WRITE)
    assert stand.run("get", KEY, allowed=READ) == "one"
    assert stand.run("copy", KEY, "d02/x", allowed=both()) is True
    assert stand.run("get", "d03/x", allowed=READ) is None


@pytest.mark.parametrize("lacking", ["Bodies.Arn/*", "Key.Arn"])
def test_calls_without_a_permission_on_objects_or_the_key_are_refused(
    stand: Stand, lacking: str
) -> None:
    with pytest.raises(PermissionError, match=r"see template\.yaml"):
        stand.run("put", KEY, b"one", allowed=without(WRITE, lacking))
    assert stand.bucket.keys() == []
    stand.bodies.put(KEY, b"one")
    for operation in (("get", KEY), ("copy", KEY, KEY)):
        with pytest.raises(PermissionError, match=r"see template\.yaml"):
            stand.run(*operation, allowed=without(both(), lacking))


def test_a_copy_takes_reading_and_writing(stand: Stand) -> None:
    stand.bodies.put(KEY, b"one")
    for allowed in (READ, WRITE):
        with pytest.raises(PermissionError, match=r"see template\.yaml"):
            stand.run("copy", KEY, "d02/x", allowed=allowed)
    assert stand.bucket.keys() == [KEY]


def test_the_key_may_be_used_through_s3_alone(stand: Stand) -> None:
    through = ("dynamodb.local.amazonaws.com",)
    elsewhere = {**WRITE, "Key.Arn": {"kms:GenerateDataKey": through}}
    with pytest.raises(PermissionError, match="kms:GenerateDataKey on Key"):
        stand.run("put", KEY, b"one", allowed=elsewhere)


def test_a_missing_object_is_told_only_with_the_permission_to_list(stand: Stand) -> None:
    """S3 tells nobody else what is there."""
    with pytest.raises(PermissionError, match=r"see template\.yaml"):
        stand.run("get", KEY, allowed=without(READ, "Bodies.Arn"))


def test_s3_does_nothing_else_here(stand: Stand) -> None:
    client = stand.session.create_client("s3")
    with pytest.raises(ClientError, match="NotImplemented"):
        client.delete_object(Bucket="Bodies", Key=KEY)
    with pytest.raises(NotOnOneMachineError):
        make_session(lambda: Functions({})).create_client("s3").list_buckets()


def test_a_template_without_the_bucket_is_told(template: Template) -> None:
    with pytest.raises(TemplateError, match="no bucket Bodies"):
        bodies_bucket(replace(template, buckets=[]))


@pytest.fixture
def world() -> World:
    return World()


def test_a_world_keeps_objects_for_the_days_of_their_class(world: World) -> None:
    bodies = world.core.bodies
    bodies.put(KEY, b"one")
    bodies.put("d16/x", b"two")
    assert world.bucket.requests() == {"PutObject": 2}
    world.clock.pass_seconds(2 * DAY_SECONDS)
    assert (bodies.get(KEY), bodies.get("d16/x")) == (None, b"two")
    world.clock.pass_seconds(15 * DAY_SECONDS)
    assert bodies.get("d16/x") is None


def test_a_world_uses_the_size_of_the_template_or_of_a_test(world: World) -> None:
    assert world.core.settings.bodies_in_s3_from == 16 * 1_024
    assert World(bodies_in_s3_from=0).core.settings.bodies_in_s3_from == 0


STACK = """
import sys
from pathlib import Path
from cirrusmq.wiring import bootstrap
from cirrusmq_local.stack.stack import Stack
stack = Stack(Path(sys.argv[1]), port=0, environments="cloud", scale=float(sys.argv[2]))
stack.start()
bodies = bootstrap.service().bodies
for command in sys.stdin:
    print(repr(eval(command)), file=sys.__stdout__, flush=True)
stack.stop()
"""


class Running:
    """A stack in a process, whose bucket answers expressions about `bodies`."""

    def __init__(self, folder: Path, scale: float) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", STACK, str(folder), str(scale)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )

    def ask(self, expression: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()
        impatience = threading.Timer(START_SECONDS, self.process.kill)
        impatience.start()
        answer = self.process.stdout.readline().strip()
        impatience.cancel()
        return answer

    def end(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
        self.process.wait(30)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Any]:
    started: list[Running] = []

    def start(scale: float = 1.0) -> Running:
        started.append(Running(tmp_path / "data", scale))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.end()


def test_files_go_when_their_class_ends_in_the_stacks_own_time(
    running: Any, tmp_path: Path
) -> None:
    # A day is a second.
    stack = running(86_400.0)
    assert stack.ask(f"bodies.put({KEY!r}, b'one')") == "None"
    assert stack.ask("bodies.put('d16/x', b'two')") == "None"
    file, other = tmp_path / "data/bodies/d01/1f3%2Fan%20id", tmp_path / "data/bodies/d16/x"
    for _ in range(600):
        stack.ask("__import__('time').sleep(0.05)")
        if not file.exists():
            break
    assert (file.exists(), other.exists()) == (False, True)
    assert stack.ask(f"bodies.get({KEY!r})") == "None"


def test_a_data_folder_from_before_gets_one(start: Start) -> None:
    first = start()
    assert first.client().put("/queues/orders").status_code == 201
    first.end()
    shutil.rmtree(first.folder / "bodies")
    second = start()
    sent = second.client().post("/queues/orders/messages", json={"messages": [{"body": "hello"}]})
    assert sent.status_code == 201
    assert (second.folder / "bodies").is_dir()
