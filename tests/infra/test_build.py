"""`sam build`: the uploaded packages are the tested ones, for the right processor, and small."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from tests.infra.tools import run_tool

from cirrusmq_local.cloud.cloudformation import APPLICATION, read

# It fetches the packages of the layer, which takes the package registry.
pytestmark = pytest.mark.long

RUNTIME = "3.13"
UNZIPPED_BYTES = 250 << 20
"""Lambda's limit of a function and its layers together."""
WANTED_BYTES = 60 << 20
"""More would be a package that slipped in."""
MAGIC = b"\xf3\r\r\n"
"""Of what Python 3.13 compiles."""
CARRY_FILES = {"Manage", "WebPages"}
"""Functions with files that they answer: the API's page, the console and the manual."""
UNCHECKED_HASH = 1
"""PEP 552: by hash, and the source is not looked at."""


def runs(program: str) -> bool:
    """Whether there is such a program; one that only says where it could be had is none."""
    path = shutil.which(program)
    if path is None:
        return False
    return subprocess.run([path, "-V"], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not runs(f"python{RUNTIME}"):
        pytest.skip(f"sam builds functions with the Python that they are for: python{RUNTIME}")
    folder = tmp_path_factory.mktemp("built")
    arguments = ("build", "--template", root / "template.yaml", "--build-dir", folder / "out")
    run = run_tool(".venv-sam/bin/sam", *arguments, cwd=folder)
    assert run.returncode == 0, run.stdout + run.stderr
    return folder / "out"


@pytest.fixture(scope="module")
def layer(built: Path) -> Path:
    return built / "CoreLayer" / "python"


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_the_layer_holds_its_packages_on_the_path_of_python(root: Path, layer: Path) -> None:
    for package in ("cirrusmq", "cirrusmq_dialects", "cirrusmq_lambda"):
        sources = {
            path.relative_to(root / "layers/core")
            for path in (root / "layers/core" / package).rglob("*")
            if path.suffix in (".py", ".json", ".lark")
        }
        assert sources
        assert [path for path in sources if not (layer / path).is_file()] == []


def test_the_layer_holds_no_tests_and_no_local_packages(layer: Path) -> None:
    names = {path.name for path in layer.iterdir()}
    unwanted = {"tests", "boto3", "moto", "pyspark", "uvicorn", "typer", "cirrusmq_local", "python"}
    assert not names & unwanted
    ours = [*(layer / "cirrusmq").rglob("*"), *(layer / "cirrusmq_lambda").rglob("*")]
    assert [path for path in ours if "test" in path.name] == []


@pytest.mark.parametrize(
    ("listed", "folder"),
    [("layers/core", "CoreLayer/python"), ("functions/manage", "Manage")],
)
def test_packages_are_those_of_its_list(root: Path, built: Path, listed: str, folder: str) -> None:
    """A package that a list leaves out would be the newest one on the day of a deployment."""
    found = {
        path.name.removesuffix(".dist-info").replace("_", "-").lower()
        for path in (built / folder).glob("*.dist-info")
    }
    pins = (root / listed / "requirements.txt").read_text()
    wanted = re.findall(r"^([\w.-]+)==(\S+)", pins, re.M)
    assert found == {f"{name}-{version}" for name, version in wanted}


def test_compiled_code_is_for_the_processor_and_the_python_it_runs_on(built: Path) -> None:
    wheels = [tag for path in built.rglob("*.dist-info/WHEEL") for tag in tags(path)]
    native = [tag for tag in wheels if not tag.endswith("-none-any")]
    assert native
    for tag in native:
        python, _, system = tag.split("-")
        assert python == f"cp{RUNTIME.replace('.', '')}"
        assert system.startswith("manylinux")
        assert system.endswith("aarch64")
    libraries = list(built.rglob("*.so"))
    assert libraries
    assert all(f"cpython-{RUNTIME.replace('.', '')}-aarch64" in path.name for path in libraries)


def tags(wheel: Path) -> list[str]:
    return re.findall(r"^Tag: (\S+)$", wheel.read_text(), re.M)


def test_every_module_of_the_layer_is_compiled_and_its_source_not_looked_at(layer: Path) -> None:
    """/opt is read-only: what is not compiled here, each cold start compiles anew."""
    sources = [path for path in layer.rglob("*.py") if path.stat().st_size]
    assert len(sources) > 300
    version = RUNTIME.replace(".", "")
    for source in sources:
        compiled = source.parent / "__pycache__" / f"{source.stem}.cpython-{version}.pyc"
        magic, flags = struct.unpack("<4sI", compiled.read_bytes()[:8])
        assert magic == MAGIC
        assert flags == UNCHECKED_HASH


def test_the_layer_knows_the_called_services_and_no_others(root: Path, layer: Path) -> None:
    """botocore looks through all it knows before it makes its first client."""
    kept = re.search(r"^SERVICES := (.*)$", (root / "layers/core/Makefile").read_text(), re.M)
    assert kept
    known = {path.name for path in (layer / "botocore/data").iterdir() if path.is_dir()}
    assert set(kept[1].split()) == known


def test_nested_applications_are_built_and_find_their_named_files(root: Path, built: Path) -> None:
    nested = {path.parent.name for path in built.glob("*/template.yaml")}
    resources = read(root / "template.yaml")["Resources"]
    applications = {name for name, held in resources.items() if held["Type"] == APPLICATION}
    assert nested == applications >= {"ReleaseAlarms", "ReportPipeline"}
    machines = []
    for template in built.rglob("template.yaml"):
        for named in re.findall(r"^ *DefinitionUri: (\S+)$", template.read_text(), re.M):
            machines.append((template.parent / named).resolve())
    assert sorted(machines) == sorted((root / "infra/statemachines").glob("*.json"))


def test_each_function_with_its_layer_fits_into_lambda(built: Path, root: Path) -> None:
    shared = size(built / "CoreLayer")
    assert shared < WANTED_BYTES
    functions = [path.parent for path in built.rglob("app.py")]
    # Those of nested applications have the layer of the others.
    assert len(functions) == len([*root.glob("functions/*/app.py")])
    for folder in functions:
        assert size(folder) + shared < UNZIPPED_BYTES
        assert folder.name in CARRY_FILES or size(folder) < 20_000
