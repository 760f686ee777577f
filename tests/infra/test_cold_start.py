"""The start of an environment: what loading makes, what it leaves to a call, and snapshots."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

LAMBDA = {
    "AWS_LAMBDA_FUNCTION_NAME": "cirrusmq-send",
    "AWS_REGION": "eu-central-1",
    "AWS_ACCESS_KEY_ID": "x",
    "AWS_SECRET_ACCESS_KEY": "x",
    "DIRECTORY_TABLE": "Directory",
    "MESSAGES_TABLE": "Messages",
    "USAGE_TABLE": "Usage",
}
HOT = ("send", "receive", "delete", "publish")
# A hot function's modules count in each of its cold starts: `python -m infra.bench cold`.
OTHERS_PACKAGES = {
    *("aws_lambda_powertools", "boto3", "asyncio", "lark", "multiprocessing", "pickle"),
    *("pynamodb", "cirrusmq_dialects"),
    *("fanout", "invoking", "maintenance", "metering", "operations", "push", "webhooks"),
}
RARELY_NEEDED = {
    "access.signing_keys",
    "access.source_rates",
    "filters.policies",
    "filters.sql",
    "lifecycle.dead_letters.age_limit",
    "lifecycle.former_sources",
    "lifecycle.dead_letters.ordered_age_limit",
    "lifecycle.transfer",
    "model.trace_context",
    "publishing.half_messages.half",
    "publishing.half_messages.checks",
    "publishing.half_messages.decide",
    "publishing.half_messages.prepare",
    "queues.counts",
    "queues.operations",
    "queues.receiver_log",
    "queues.receiver_management",
    "receiving.lookup.find",
    "receiving.ageing",
    "receiving.best_levels",
    "receiving.by_priority",
    "receiving.group_rates",
    "receiving.peek",
    "receiving.selected",
    "receiving.idempotent",
    "storage.bisection",
    "publishing.half_messages.items",
    "storage.models",
    "subscriptions.confirmations",
    "lifecycle.dead_letters.own_queue",
    "subscriptions.delivery",
    "subscriptions.management",
    "subscriptions.replays",
    "subscriptions.writes",
}
LOADED = """
import gc, json, socket, sys, threading
opened = []
class Noted(socket.socket):
    def connect(self, address):
        opened.append(address)
        raise OSError("there is no network here")
socket.socket = Noted
import app
from cirrusmq.wiring import bootstrap
print(json.dumps({
    "clients": bootstrap.dynamodb.cache_info().currsize,
    "cores": bootstrap._wire.cache_info().currsize,
    "opened": opened,
    "threads": threading.active_count(),
    "collecting": gc.isenabled(),
    "kept": gc.get_freeze_count(),
    "modules": list(sys.modules),
    "routes": sorted({route.__module__ for route in getattr(app, "ROUTES", {}).values()}),
}))
"""
# Two environments that start from one snapshot: what is made once while loading is in both.
FORKED = """
import json, os, random, time
import app
from cirrusmq.wiring import bootstrap
random.seed(7)
told = []
for _ in range(2):
    read, write = os.pipe()
    if os.fork() == 0:
        core = bootstrap.service()
        told = {
            "drawn": [core.random_bytes(16).hex(), core.random.random(), random.random()],
            "now_ms": core.now_ms(),
            "system_ms": time.time_ns() // 1_000_000,
            "remembered": len(core.cache._values) + len(core.slow_cache._values),
        }
        os.write(write, json.dumps(told).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        told.append(json.load(pipe))
    os.wait()
print(json.dumps(told))
"""


def run(root: Path, function: str, code: str, **environment: str) -> Any:
    """What a process says in JSON that runs `code` with a function's module at hand."""
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root / "functions" / function,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@cache
def loaded(root: Path, function: str) -> Any:
    """LOADED of a function as in the cloud, for all tests that look at it."""
    return run(root, function, LOADED, **LAMBDA)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "function", ["send", "receive", "delete", "publish", "push", "push_slow", "call", "sweep"]
)
def test_a_function_loads_its_client_and_opens_nothing(root: Path, function: str) -> None:
    """So the first call finds it, and a snapshot of the environment holds no connection."""
    told = loaded(root, function)
    assert (told["clients"], told["cores"]) == (1, 1)
    assert told["opened"] == []
    assert told["threads"] == 1
    assert told["collecting"]
    assert told["kept"] > 10_000
    assert "encodings.idna" in told["modules"]  # each connection needs it


def test_on_one_machine_loading_makes_nothing(root: Path) -> None:
    told = run(root, "send", LOADED)
    assert (told["clients"], told["cores"], told["kept"]) == (0, 0, 0)
    assert told["collecting"]


@pytest.mark.parametrize("function", HOT)
def test_a_hot_function_loads_no_rarely_needed_module(root: Path, function: str) -> None:
    modules = loaded(root, function)["modules"]
    names = {name.removeprefix("cirrusmq.") for name in modules}
    packages = {name.partition(".")[0] for name in names}
    assert not RARELY_NEEDED & names
    assert not OTHERS_PACKAGES & packages
    assert {"botocore", "storage", "runtime"} <= packages


@pytest.mark.parametrize("function", HOT)
def test_the_routes_of_a_hot_function_are_compiled_with_the_layer(
    root: Path, function: str
) -> None:
    """Each cold start compiles anew the code that a function has in its own folder."""
    homes = loaded(root, function)["routes"]
    assert homes
    assert all(home.startswith("cirrusmq_lambda.routes.") for home in homes)


@pytest.mark.parametrize("function", HOT)
def test_libraries_are_imported_before_our_own_modules(root: Path, function: str) -> None:
    """Deep down in the imports of ours they take longer: see `cirrusmq_lambda.loading`."""
    modules = loaded(root, function)["modules"]
    first_of_ours = next(place for place, name in enumerate(modules) if name == "cirrusmq")
    for library in ("urllib3", "botocore.session", "msgspec"):
        assert modules.index(library) < first_of_ours
    # botocore's own imports would find it deeper down.
    assert modules.index("urllib3.util.url") < modules.index("botocore")


def test_two_starts_of_one_snapshot_share_no_random_numbers(root: Path, tmp_path: Path) -> None:
    """Python's own generator, by which botocore spreads its retries, is seeded anew."""
    hooks = (
        "import os\ndef register_after_restore(call): os.register_at_fork(after_in_child=call)\n"
    )
    (tmp_path / "snapshot_restore_py.py").write_text(hooks)
    one, other = run(
        root,
        "send",
        FORKED,
        **LAMBDA,
        AWS_LAMBDA_INITIALIZATION_TYPE="snap-start",
        PYTHONPATH=str(tmp_path),
    )
    assert all(a != b for a, b in zip(one["drawn"], other["drawn"], strict=True))


def test_the_clock_goes_on_from_the_start_and_not_from_the_snapshot(root: Path) -> None:
    """And nothing that an environment remembers of tables is in a snapshot."""
    for told in run(root, "send", FORKED, **LAMBDA):
        assert abs(told["now_ms"] - told["system_ms"]) < 1_000
        assert told["remembered"] == 0


def test_the_first_line_of_the_core_is_logged_as_all_others_are(root: Path) -> None:
    """By Powertools, which is imported for it; at the level that it is told; and once."""
    code = """
import json, logging, io, sys
sys.stdout = lines = io.StringIO()
import app
log = logging.getLogger("cirrusmq.runtime.isolation")
for text in ("one", "two"):
    log.info("below the level")
    log.warning("%s: late", text)
print(json.dumps([json.loads(line) for line in lines.getvalue().splitlines()]), file=sys.__stdout__)
"""
    told = {"POWERTOOLS_SERVICE_NAME": "cirrusmq", "POWERTOOLS_LOG_LEVEL": "WARNING"}
    lines = run(root, "send", code, **LAMBDA, **told)
    assert [line["message"] for line in lines] == ["one: late", "two: late"]
    assert all((line["level"], line["service"]) == ("WARNING", "cirrusmq") for line in lines)
