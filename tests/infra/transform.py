"""Prints the template as CloudFormation gets it; run by the SAM command line's own Python."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


class NoManagedPolicies:
    """The names of AWS's own policies take an account to look up; the template names none."""

    def load(self) -> dict[str, str]:
        return {}


def main() -> None:
    validator = importlib.import_module("samcli.lib.translate.sam_template_validator")
    yaml = importlib.import_module("samcli.yamlhelper")
    document = yaml.yaml_parse(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sam = validator.SamTemplateValidator(document, NoManagedPolicies(), region="eu-central-1")
    print(sam.get_translated_template_if_valid())


if __name__ == "__main__":
    main()
