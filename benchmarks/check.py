"""
How much of a processor ``holdfast check`` takes: the largest environment, AWS's largest template, one at the limits.

    HOLDFAST_PUBLIC_TEMPLATES=FOLDER python benchmarks/check.py

Seconds are user and system time of a process of its own, imports included, with its bytecode cached as an installation
has it. tests/unit/templates/test_templates_public.py says how the folder is filled; without it AWS's is left out.
The one at CloudFormation's limits is made here.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

ROUNDS = 5
REPOSITORY = Path(__file__).parents[1]
BOUNDS_S = {"environment": 0.5, "template": 2.0, "template at the limits": 10.0}


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
            seconds = [processor_s(path) for _ in range(ROUNDS + 1)][1:]  # the first writes bytecode
            spread = f"{min(seconds):.2f} to {max(seconds):.2f}"
            print(
                f"{kind} {path.name}, {path.stat().st_size:,} bytes: {statistics.median(seconds):.2f} s of processor "
                f"({spread}); limit: {BOUNDS_S[kind]} s"
            )


def largest(folder: Path) -> Path:
    return max((path for path in folder.rglob("*.yaml") if path.is_file()), key=lambda path: path.stat().st_size)


def processor_s(path: Path) -> float:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begun = os.times()
    subprocess.run(
        [sys.executable, "-c", "from holdfast.cli import main; main()", "check", str(path), "--offline"],
        capture_output=True,
        check=False,
        cwd=REPOSITORY,
        env=environment,
    )
    ended = os.times()
    return ended.children_user + ended.children_system - begun.children_user - begun.children_system


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
