"""The client for TypeScript, in Node on the running service; its types, by the compiler."""

from __future__ import annotations

import base64
import json
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.manual.test_manual_webhooks import cases
from tests.stack import Stack, environment

import cirrusmq_client

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGE = ROOT / "layers/client-typescript"
COMPILER = ROOT / ".node/node_modules/typescript/bin/tsc"
"""Fetched by `make tools`."""
MAX_LINES = 1_200
SECONDS = 90
MISTAKES = {
    "visibility_timeout_seconds: 60": "visibility_timeout: 60",
    "delay_seconds: 5": 'delay_seconds: "5"',
    'tags: ["paid"]': 'tags: "paid"',
    "max: 16": "most: 16",
    'receiveWhere("orders", "shop"': 'receiveWhere("orders", 3',
    'new DeadLetter("too often")': "new DeadLetter(3)",
    'message.text === "" ? new Retry(5) : undefined': '"again"',
    '"GET /queues/{queue}"': '"GET /queue/{queue}"',
    "shown.counts.active": "shown.counts.activ",
}
node = shutil.which("node")
needs_node = pytest.mark.skipif(node is None, reason="Node is not on this machine")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder of programs, in which the package is installed."""
    with tempfile.TemporaryDirectory() as name:
        made = Path(name)
        (made / "node_modules").mkdir()
        (made / "node_modules/cirrusmq-client").symlink_to(PACKAGE, target_is_directory=True)
        for program in (*HERE.glob("*.mjs"), *HERE.glob("*.ts")):
            shutil.copy(program, made)
        yield made


def variables(stack: Stack, account: str) -> dict[str, str]:
    """The key of an account of a test's own."""
    made = stack.client().post("/keys", json={"account": account}).json()
    return environment() | {
        "CIRRUSMQ_URL": stack.url,
        "CIRRUSMQ_ACCESS_KEY_ID": made["access_key_id"],
        "CIRRUSMQ_SECRET": made["secret"],
    }


@needs_node
@pytest.mark.parametrize("program", ["calls", "consume"])
def test_its_programs_work_on_the_running_service(
    program: str, folder: Path, shared_stack: Stack
) -> None:
    run = subprocess.run(
        [str(node), f"{program}.mjs"],
        cwd=folder,
        env=variables(shared_stack, f"typescript-{program}"),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert (run.returncode, run.stdout.strip()) == (0, "done"), run.stderr


@needs_node
def test_the_manuals_program_sends_handles_and_ends_on_sigterm(
    folder: Path, shared_stack: Stack
) -> None:
    process = subprocess.Popen(
        [str(node), "hello.mjs"],
        cwd=folder,
        env=variables(shared_stack, "typescript-hello"),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process:
        lines = sorted(process.stdout.readline().strip() for _ in range(2))
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
    assert lines == ["handled one tea 7", "handled two coffees"]
    assert time.monotonic() - began < 15  # a receive of 5 s, and not the grace of 30 s


@needs_node
def test_it_takes_genuine_webhooks_and_no_forged_ones(folder: Path) -> None:
    given = [
        {"secret": secret, "headers": dict(headers), "body": base64.b64encode(body).decode()}
        for secret, headers, body, _ in cases()
    ]
    run = subprocess.run(
        [str(node), "verify.mjs"],
        input="".join(json.dumps(each) + "\n" for each in given),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert run.stdout.split() == ["true" if wanted else "false" for *_, wanted in cases()]


def compiled(folder: Path, text: str) -> list[str]:
    """The compiler's errors for a program."""
    (folder / "program.ts").write_text(text)
    options = ("--noEmit", "--strict", "--module", "nodenext", "--lib", "es2023,dom")
    run = subprocess.run(
        [str(node), str(COMPILER), *options, "--preserveSymlinks", "program.ts"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    return [line for line in run.stdout.splitlines() if "error TS" in line]


@pytest.mark.long
@needs_node
@pytest.mark.skipif(not COMPILER.exists(), reason="TypeScript is not there: make tools")
def test_the_compiler_sees_each_planted_mistake_and_nothing_else(folder: Path) -> None:
    text = (HERE / "typed.ts").read_text("utf-8")
    assert compiled(folder, text) == []
    for right in MISTAKES:
        assert text.count(right) == 1, right
    # All at once: a run of the compiler takes seconds.
    lines = text.splitlines()
    for right, wrong in MISTAKES.items():
        lines = [line.replace(right, wrong) for line in lines]
    wanted = {n for n, (a, b) in enumerate(zip(text.splitlines(), lines, strict=True), 1) if a != b}
    found = compiled(folder, "\n".join(lines))
    seen = {int(re.findall(r"\((\d+),", line)[0]) for line in found}
    # A handler's wrong result is told where the handler is given.
    result = next(number for number, line in enumerate(lines, 1) if '"again"' in line)
    handler = next(number for number, line in enumerate(lines, 1) if "new Consumer(" in line)
    assert wanted <= seen | ({result} if handler in seen else set()), found


def test_all_declared_names_exist() -> None:
    declared = (PACKAGE / "src/index.d.ts").read_text("utf-8")
    exported = (PACKAGE / "src/index.js").read_text("utf-8")
    names = set(re.findall(r"^export (?:class|function) (\w+)", declared, re.M))
    assert names == set(
        re.findall(
            r"\b[A-Z]\w+(?=[, ])|isGenuine", " ".join(re.findall(r"export {(.+?)}", exported))
        )
    )
    for kind, path in (("Client", "client.js"), ("Consumer", "consumer.js")):
        body = declared.partition(f"export class {kind} {{")[2].partition("\n}\n")[0]
        methods = set(re.findall(r"^  (\w+)[(<]", body, re.M)) - {"constructor"}
        code = (PACKAGE / "src" / path).read_text("utf-8")
        for method in methods:
            assert re.search(rf"^  (?:async )?{method}\(", code, re.M), method


def test_the_package_is_small_has_no_dependency_and_the_librarys_version() -> None:
    described = json.loads((PACKAGE / "package.json").read_text("utf-8"))
    assert described["version"] == cirrusmq_client.__version__
    assert not [name for name in described if name.endswith("ependencies")]
    written = [path for path in PACKAGE.rglob("*.[jt]s") if path.name != "contract.d.ts"]
    assert sum(len(path.read_text("utf-8").splitlines()) for path in written) <= MAX_LINES
    for path in written:
        for name in re.findall(r'from "([^"]+)"', path.read_text("utf-8")):
            assert name.startswith("./"), f"{path.name} imports {name}"
