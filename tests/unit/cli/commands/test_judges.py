"""``holdfast check`` and a synthesis judge alike, and the constructs cause no warning of the CDK."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ENVIRONMENTS = sorted(path.stem for path in (Path(__file__).parents[4] / "environments").glob("*.yaml"))


def synthesised(repository: Path, file: Path, out: Path) -> tuple[set[str], list[str]]:
    """Rules that the synthesis finds broken, and warnings of the CDK itself."""
    context = {**json.loads((repository / "cdk.json").read_text())["context"], "environment": str(file)}
    variables = {**os.environ, "CDK_OUTDIR": str(out), "CDK_CONTEXT_JSON": json.dumps(context)}
    command = [sys.executable, "app.py"]
    subprocess.run(command, cwd=repository, env=variables, capture_output=True, check=False, timeout=100)
    reports = [json.loads(path.read_text()) for path in out.glob("validation-report.json")]
    broken = {
        violation["ruleName"]
        for report in reports
        for plugin in report["pluginReports"]
        for violation in plugin["violations"]
        if violation.get("severity") in ("error", "warning", "fatal")
    }
    metadata = [json.loads(path.read_text()) for path in (out / "manifest.json", *out.glob("*.metadata.json"))]
    return broken, sorted(_warnings(metadata))


def _warnings(value: Any) -> set[str]:
    if isinstance(value, list):
        return {one for each in value for one in _warnings(each)}
    if not isinstance(value, dict):
        return set()
    own = {str(value.get("data"))} if value.get("type") in ("aws:cdk:warning", "aws:cdk:error") else set()
    return own | {one for each in value.values() for one in _warnings(each)}


def checked(file: Path) -> set[str]:
    from holdfast.validation.from_environment import check

    return {one.code for one in check(file).findings if one.severity in ("error", "warning")}


def judged_alike(repository: Path, file: Path, out: Path) -> None:
    broken, warnings = synthesised(repository, file, out)
    assert (out / "manifest.json").exists()
    assert broken == checked(file)
    assert warnings == []


@pytest.mark.e2e
def test_a_type_that_the_region_has_by_our_list_is_not_refused_by_the_cdks_older_one(
    repository: Path, tmp_path: Path
) -> None:
    document = yaml.safe_load((repository / "environments/slurm-p5.yaml").read_text())
    text = yaml.safe_dump(document).replace("us-west-2", "us-east-2").replace("ml.p5.48xlarge", "ml.p5e.48xlarge")
    file = tmp_path / "slurm-p5.yaml"
    file.write_text(text)
    judged_alike(repository, file, tmp_path / "out")


@pytest.mark.e2e
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_environment_is_judged_alike(name: str, repository: Path, tmp_path: Path) -> None:
    judged_alike(repository, repository / "environments" / f"{name}.yaml", tmp_path)
