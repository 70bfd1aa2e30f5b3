"""
How much of a processor ``holdfast check`` takes: the largest environment, AWS's largest template, one at the limits.

    HOLDFAST_PUBLIC_TEMPLATES=FOLDER python benchmarks/check.py

Seconds are user and system time of a process of its own, imports included, with its bytecode cached as an installation
has it. A template is measured beside cfn-lint alone, whose rules judge it too; the one at CloudFormation's limits is
made here. tests/unit/validation/templates/test_public.py says how the folder is filled; without it AWS's is left out.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import yaml

ROUNDS = 5
REPOSITORY = Path(__file__).parents[1]
CHECK = (sys.executable, "-c", "from holdfast.cli import main; main()", "check")
CFN_LINT = str(Path(sys.executable).with_name("cfn-lint"))
ENVIRONMENT_S, BESIDE_CFN_LINT_S = 0.7, 0.7
"""Limits: for an environment file, and for a template beyond what cfn-lint takes for it by itself."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made.yaml"
        made.write_text(
            yaml.dump(json.loads(json.dumps(megabyte())), Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper))
        )
        inputs = [("environment", largest(REPOSITORY / "environments"))]
        public = os.environ.get("HOLDFAST_PUBLIC_TEMPLATES")
        inputs += [("template", largest(Path(public)))] if public else []
        inputs += [("template at the limits", made)]
        for kind, path in inputs:
            alone = 0.0 if kind == "environment" else processor_s([CFN_LINT, str(path)])
            limit = ENVIRONMENT_S if kind == "environment" else alone + BESIDE_CFN_LINT_S
            taken = processor_s([*CHECK, str(path), "--offline"])
            print(
                f"{kind} {path.name}, {path.stat().st_size:,} bytes: {taken:.2f} s of processor; limit: {limit:.2f} s; "
                f"cfn-lint alone: {alone:.2f} s"
            )


def largest(folder: Path) -> Path:
    return max((path for path in folder.rglob("*.yaml") if path.is_file()), key=lambda path: path.stat().st_size)


def processor_s(command: Sequence[str]) -> float:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    seconds = []
    for _ in range(ROUNDS + 1):
        begun = os.times()
        subprocess.run(command, capture_output=True, check=False, cwd=REPOSITORY, env=environment)
        ended = os.times()
        seconds.append(ended.children_user + ended.children_system - begun.children_user - begun.children_system)
    return statistics.median(seconds[1:])  # the first writes bytecode


def megabyte() -> dict[str, object]:
    """A template at CloudFormation's limits: 500 resources in about a megabyte, and a condition for each tenth."""
    names = [f"P{number}" for number in range(50)]
    statement = {"Effect": "Allow", "Action": ["s3:GetObject"] * 70, "Resource": "*"}
    policy = {"PolicyName": "p", "PolicyDocument": {"Statement": [statement]}}
    resources: dict[str, object] = {}
    for number in range(500):
        role: dict[str, object] = {"Type": "AWS::IAM::Role", "Properties": {"Policies": [policy]}}
        if number % 10 == 0:
            role["Condition"] = f"C{names[number // 10]}"
        resources[f"Role{number}"] = role
    return {
        "Parameters": {name: {"Type": "String", "Default": "no"} for name in names},
        "Conditions": {f"C{name}": {"Fn::Equals": [{"Ref": name}, "yes"]} for name in names},
        "Resources": resources,
    }


if __name__ == "__main__":
    main()
