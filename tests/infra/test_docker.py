"""The Dockerfile and the compose file, which nothing here builds: they are read by these tests."""

from __future__ import annotations

import json
import re
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from cirrusmq import __version__
from cirrusmq_local.cloud.template import TEMPLATE
from cirrusmq_local.commands.cli import make_app

Instructions = list[tuple[str, str]]


@pytest.fixture(scope="module")
def folder(root: Path) -> Path:
    return root / "infra/docker"


@pytest.fixture(scope="module")
def instructions(folder: Path) -> Instructions:
    """Each instruction of the Dockerfile with its arguments, lines that go on joined."""
    text = re.sub(r"^#.*\n", "", (folder / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = [line for line in re.sub(r"\\\n\s*", "", text).splitlines() if line.strip()]
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]


@pytest.fixture(scope="module")
def service(folder: Path) -> dict[str, Any]:
    (held,) = yaml.safe_load((folder / "compose.yaml").read_text())["services"].values()
    return dict(held)


def all_of(instructions: Instructions, name: str) -> list[str]:
    return [arguments for each, arguments in instructions if each == name]


def check_command(words: list[str]) -> dict[str, str]:
    """The options of a command line of ours, each known to its command."""
    name, *rest = words
    command = typer.main.get_command(make_app()).commands[name]  # type: ignore[attr-defined]
    known = {option for each in command.params for option in each.opts}
    assert len(rest) % 2 == 0
    given = dict(zip(rest[::2], rest[1::2], strict=True))
    assert given.keys() <= known
    return given


def test_its_copied_files_exist_and_are_let_in(
    instructions: Instructions, folder: Path, root: Path
) -> None:
    ignored = (folder / "Dockerfile.dockerignore").read_text().splitlines()
    let_in = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    copied = [each.split()[:-1] for each in all_of(instructions, "COPY") if "--from" not in each]
    sources = {source for sources in copied for source in sources}
    assert {source.partition("/")[0] for source in sources} == let_in
    assert all((root / source).exists() for source in sources)


def test_it_installs_the_runtime_lock_and_the_built_wheel(
    instructions: Instructions, root: Path
) -> None:
    runs = " && ".join(all_of(instructions, "RUN"))
    assert "--require-hashes --no-deps --requirement infra/requirements-up.lock" in runs
    (module,) = re.findall(r"-m (infra\.\w+)", runs)
    assert find_spec(module) is not None
    (wheel,) = re.findall(r"/wheels/(\S+)", runs)
    assert Path(f"cirrusmq-{__version__}-py3-none-any.whl").match(wheel)
    assert not Path(f"cirrusmq_client-{__version__}-py3-none-any.whl").match(wheel)


def test_its_python_matches_the_functions(instructions: Instructions) -> None:
    (runtime,) = set(re.findall(r"Runtime: python(\S+)", TEMPLATE.read_text()))
    images = [each.split()[0] for each in all_of(instructions, "FROM")]
    assert images == [f"python:{runtime}-slim"] * 2


def test_it_does_not_run_as_root_and_keeps_everything_in_its_volume(
    instructions: Instructions, service: dict[str, Any]
) -> None:
    names = [name for name, _ in instructions]
    assert all_of(instructions, "USER") == ["cirrusmq"]
    assert "--uid 10001" in all_of(instructions, "RUN")[-1]
    assert names.index("USER") > max(n for n, name in enumerate(names) if name == "RUN")
    (volume,) = all_of(instructions, "VOLUME")
    assert service["volumes"] == [f"data:{volume}"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    (command,) = all_of(instructions, "CMD")
    assert check_command(json.loads(command))["--data"] == volume


def test_it_answers_at_the_ports_published_on_this_machine_alone(
    instructions: Instructions, service: dict[str, Any]
) -> None:
    (exposed,) = all_of(instructions, "EXPOSE")
    published = [port.split(":") for port in service["ports"]]
    assert [target for _, _, target in published] == exposed.split()
    assert {address for address, _, _ in published} == {"127.0.0.1"}
    (command,) = all_of(instructions, "CMD")
    given = check_command(json.loads(command))
    assert (given["--host"], given["--port"]) == ("0.0.0.0", exposed.split()[0])


def test_its_health_is_asked_for_by_an_existing_command(instructions: Instructions) -> None:
    assert json.loads(all_of(instructions, "ENTRYPOINT")[0]) == ["cirrusmq"]
    (health,) = all_of(instructions, "HEALTHCHECK")
    program, *words = json.loads(health.partition("CMD ")[2])
    assert program == "cirrusmq"
    assert check_command(words)["--data"] == all_of(instructions, "VOLUME")[0]


def test_the_compose_file_builds_this_dockerfile_and_its_suggestions_are_possible(
    folder: Path, root: Path, service: dict[str, Any]
) -> None:
    built = service["build"]
    context = (folder / built["context"]).resolve()
    assert context == root
    assert context / built["dockerfile"] == folder / "Dockerfile"
    (suggested,) = re.findall(r"#\s+command: (\[.*\])", (folder / "compose.yaml").read_text())
    assert "--definitions" in check_command(yaml.safe_load(suggested))
    for line in re.findall(r"^#   (docker .*)", (folder / "Dockerfile").read_text(), re.MULTILINE):
        assert shlex.split(line)[1] in ("build", "run")
