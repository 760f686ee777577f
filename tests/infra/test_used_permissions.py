"""Every permission on a table or the bucket is used: by the tests of the service, or rarely."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.infra.test_bodies import READERS

from cirrusmq_local.cloud.template import Template

# Runs all tests of the service, which takes minutes.
pytestmark = pytest.mark.long

TABLES = {"Directory.Arn", "Messages.Arn", "Usage.Arn"}
BUCKET = {"Bodies.Arn", "Bodies.Arn/*"}
KEY = ("Key.Arn", "kms:GenerateDataKey")
"""Of the key's actions that one which is given for the bucket alone."""
# Calls are counted where accounts have a rate, which is off here; the first of a key on a day is
# noted by whichever of these answers it.
COUNTING = {
    (function, "Usage.Arn", "dynamodb:UpdateItem")
    for function in ("Send", "Receive", "Delete", "Publish", "Subscribe", "Manage")
}

# Tests of the pipeline play it: `test_publish_report.py`.
ELSEWHERE = {("PublishReport", *KEY)}

# Without it S3 does not say that an object is missing, which none is unless somebody deleted it.
LISTING = {(function, "Bodies.Arn", "s3:ListBucket") for function in READERS}


def test_every_allowed_permission_is_used(root: Path, template: Template, tmp_path: Path) -> None:
    noted = tmp_path / "used.json"
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-m", "not long", "tests/service"),
            *("-p", "tests.infra.permission_recorder", "-p", "no:cacheprovider"),
        ],
        cwd=root,
        env={**os.environ, "USED_PERMISSIONS": str(noted), "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    used = {tuple(each) for each in json.loads(noted.read_text())}
    used = {each for each in used if each[1] != "Key.Arn" or each[1:] == KEY}
    allowed = {
        (function.logical_id, target, action)
        for function in template.functions
        for target, actions in function.permissions.items()
        for action in actions
        if target in TABLES | BUCKET or (target, action) == KEY
    }
    assert allowed - used - COUNTING - LISTING - ELSEWHERE == set()
    assert used & COUNTING
    assert used <= allowed
