"""Writes templates in CloudFormation's form; run by the SAM command line's own Python.

transform.py <folder to read from> <folder to write to> <template>…
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


class NoManagedPolicies:
    """An empty list of AWS's policies: a look-up needs an account, and the template names none."""

    def load(self) -> dict[str, str]:
        return {}


def main() -> None:
    validator = importlib.import_module("samcli.lib.translate.sam_template_validator")
    yaml = importlib.import_module("samcli.yamlhelper")
    source, target, *names = sys.argv[1:]
    for name in names:
        document = yaml.yaml_parse((Path(source) / name).read_text(encoding="utf-8"))
        sam = validator.SamTemplateValidator(document, NoManagedPolicies(), region="eu-central-1")
        path = Path(target) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(sam.get_translated_template_if_valid(), encoding="utf-8")


if __name__ == "__main__":
    main()
