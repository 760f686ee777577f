"""`sam build`: the uploaded packages are the tested ones, for the right processor, and small."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from tests.infra.tools import run_tool

# It fetches the packages of the layer, which takes the package registry.
pytestmark = pytest.mark.long

UNZIPPED_BYTES = 250 << 20
"""Lambda's limit of a function and its layers together."""
WANTED_BYTES = 60 << 20
"""More would be a package that slipped in."""


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("python3.11") is None:
        pytest.skip("sam builds a layer with the Python that it is for, and python3.11 is not here")
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


def test_the_layer_holds_both_packages_where_python_finds_them(root: Path, layer: Path) -> None:
    for package in ("cirrusmq", "cirrusmq_lambda"):
        sources = {
            path.relative_to(root / "layers/core")
            for path in (root / "layers/core" / package).rglob("*")
            if path.suffix in (".py", ".json", ".lark")
        }
        assert sources
        assert [path for path in sources if not (layer / path).is_file()] == []


def test_the_layer_holds_no_tests_and_none_of_what_runs_on_one_machine(layer: Path) -> None:
    names = {path.name for path in layer.iterdir()}
    unwanted = {"tests", "boto3", "moto", "pyspark", "uvicorn", "typer", "cirrusmq_local", "python"}
    assert not names & unwanted
    ours = [*(layer / "cirrusmq").rglob("*"), *(layer / "cirrusmq_lambda").rglob("*")]
    assert [path for path in ours if "test" in path.name] == []


@pytest.mark.parametrize(
    ("listed", "folder"),
    [("layers/core", "CoreLayer/python"), ("functions/manage", "Manage")],
)
def test_packages_are_those_of_the_lock(root: Path, built: Path, listed: str, folder: str) -> None:
    """A package that a list leaves out would be the newest one on the day of a deployment."""
    found = {
        path.name.removesuffix(".dist-info").replace("_", "-").lower()
        for path in (built / folder).glob("*.dist-info")
    }
    wanted = set((root / listed / "requirements.txt").read_text().split())
    assert found == {name.replace("==", "-") for name in wanted}


def test_compiled_code_is_for_the_processor_it_runs_on(layer: Path) -> None:
    compiled = list(layer.rglob("*.so"))
    assert compiled
    assert all("aarch64" in path.name for path in compiled)


def test_nested_applications_are_built_and_find_what_they_name(root: Path, built: Path) -> None:
    nested = {path.parent.name for path in built.glob("*/template.yaml")}
    assert nested == {"RolloutAlarms", "ServiceAlarms", "ReportPipeline"}
    machines = []
    for template in built.rglob("template.yaml"):
        for named in re.findall(r"^ *DefinitionUri: (\S+)$", template.read_text(), re.M):
            machines.append((template.parent / named).resolve())
    assert sorted(machines) == sorted((root / "infra/statemachines").glob("*.json"))


def test_each_function_with_its_layer_fits_into_lambda(built: Path) -> None:
    shared = size(built / "CoreLayer")
    assert shared < WANTED_BYTES
    functions = [path for path in built.iterdir() if (path / "app.py").is_file()]
    assert len(functions) == 11
    for folder in functions:
        assert size(folder) + shared < UNZIPPED_BYTES
        assert folder.name == "Manage" or size(folder) < 20_000
