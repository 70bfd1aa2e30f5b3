"""Whatever environment the rules find no error in synthesises; ordinary ones without an objection of any linter."""

import json
import shutil
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml
from cfnlint.api import ManualArgs, lint
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from nagging import accepted_by, nagged
from random_settings import SCRIPT, changed
from unlinted import unlinted

from holdfast.config import EnvironmentFileError, load
from holdfast.validation.from_environment import check, load_checked
from holdfast_stacks import HyperPodStack

pytestmark = pytest.mark.e2e

LINT_ACCEPTED = {
    "W3005": "the CDK expands a dependency on a construct to all in it, also to what a Ref names anyway",
    "W3010": "the zone is part of the environment file, on purpose",
}


def groups(orchestrator: str) -> st.SearchStrategy[list[dict[str, Any]]]:
    """A controller where one is needed, and one to three groups of workers."""

    @st.composite
    def workers(draw: st.DrawFn, index: int) -> dict[str, Any]:
        kind = draw(st.sampled_from(["ml.p5.48xlarge", "ml.g5.8xlarge", "ml.trn1.32xlarge", "ml.c5.4xlarge"]))
        group: dict[str, Any] = {
            "name": f"workers{index}",
            "instance_type": kind,
            "instance_count": draw(st.integers(1, 12)),
            "spare_count": draw(st.integers(0, 2)),
            "threads_per_core": draw(st.sampled_from([1, 2])),
        }
        if draw(st.booleans()):
            group["volume_gib"] = draw(st.integers(1, 16384))
        if draw(st.booleans()) and not kind.startswith("ml.c5"):
            group["deep_health_checks"] = ["InstanceStress"]
        if draw(st.booleans()):
            group["scheduled_update"] = {"schedule_expression": "cron(0 3 ? * SUN *)"}
        if orchestrator == "slurm":
            group["slurm"] = {"node_type": "Compute", "partition": draw(st.sampled_from(["dev", "train"]))}
        elif draw(st.booleans()):
            group["labels"] = {"role": "training"}
        return group

    @st.composite
    def all_groups(draw: st.DrawFn) -> list[dict[str, Any]]:
        found = [draw(workers(index)) for index in range(draw(st.integers(1, 3)))]
        if orchestrator == "slurm":
            head = {"name": "head", "instance_type": "ml.m5.2xlarge", "instance_count": 1}
            found.insert(0, {**head, "slurm": {"node_type": "Controller"}})
        return found

    return all_groups()


@st.composite
def environments(draw: st.DrawFn) -> dict[str, Any]:
    """An environment of either orchestrator, with and without most of what is optional."""
    orchestrator = draw(st.sampled_from(["slurm", "eks"]))
    continuous = draw(st.booleans())
    document: dict[str, Any] = {
        "name": "random",
        "account": "111122223333",
        "region": "us-west-2",
        "encryption": {"kms_key": draw(st.sampled_from(["aws-managed", "create"]))},
        "network": {
            "cidr": "10.1.0.0/16",
            "availability_zone": "us-west-2a",
            "egress": draw(st.sampled_from(["nat", "none"])) if orchestrator == "slurm" else "nat",
        },
        "cluster": {
            "node_recovery": draw(st.sampled_from(["Automatic", "None"])),
            "instance_groups": draw(groups(orchestrator)),
        },
        "storage": {"on_delete": draw(st.sampled_from(["Retain", "Delete"]))},
        "observability": {
            "alarms": draw(st.booleans()),
            "dashboard": draw(st.booleans()),
            "prometheus": draw(st.booleans()),
            "mlflow": draw(st.booleans()),
        },
    }
    if continuous:
        document["cluster"]["node_provisioning_mode"] = "Continuous"
    if draw(st.booleans()):
        throughput = draw(st.sampled_from([125, 250, 500, 1000]))
        document["observability"]["tensorboard"] = draw(st.booleans())
        document["storage"]["lustre"] = {
            "capacity_gib": draw(st.sampled_from([1200, 2400, 4800])),
            "throughput_mbps_per_tib": throughput,
            "datasets": [{"name": "data", "file_system_path": "/data", "s3_prefix": "data", "auto_import": ["NEW"]}],
        }
    if orchestrator == "eks":
        document["network"]["control_plane_availability_zone"] = "us-west-2b"
        document["eks"] = {"kubernetes_version": "1.34", "training_operator": draw(st.booleans())}
    elif draw(st.booleans()):
        document["storage"]["home"] = {"capacity_gib": 512}
    return document


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("random")


@settings(
    max_examples=max(2, settings.default.max_examples // 50), derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(document=environments())
def test_an_environment_without_errors_synthesises_and_no_linter_objects(
    document: dict[str, Any], folder: Path
) -> None:
    path = folder / "random.yaml"
    path.write_text(yaml.safe_dump(document))
    assert [str(finding) for finding in check(path).findings if finding.severity == "error"] == []
    environment = load(path)
    root = Path(__file__).parents[2]
    app = cdk.App(context=json.loads((root / "cdk.json").read_text())["context"], analytics_reporting=False)
    HyperPodStack(app, environment.stack_name, environment=environment)
    assembly, objections = nagged(app)
    template = json.loads((assembly / f"{environment.stack_name}.template.json").read_text())

    assert [objection for objection in objections if accepted_by(*objection) is None] == []
    findings = lint(json.dumps(template), config=ManualArgs(regions=["us-west-2"]))
    assert [str(finding) for finding in findings if finding.rule.id not in LINT_ACCEPTED] == []


ROOT = Path(__file__).parents[2]
BASES = {path.stem: yaml.safe_load(path.read_text()) for path in sorted((ROOT / "environments").glob("*.yaml"))}
CHANGES = 24


@settings(
    max_examples=max(5, settings.default.max_examples // 8),
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_no_file_without_errors_ends_in_a_traceback(data: st.DataObject, folder: Path) -> None:
    """Each document is changed at random for as long as check finds no error in it, and then synthesised."""
    shutil.copytree(ROOT / "environments" / "scripts", folder / "scripts", dirs_exist_ok=True)
    (folder / SCRIPT).write_text("#!/bin/bash\necho ready\n")
    path = folder / "walk.yaml"
    document = BASES[data.draw(st.sampled_from(sorted(BASES)))]
    path.write_text(yaml.safe_dump(document))
    environment, _ = load_checked(path)
    for _ in range(CHANGES):
        other = data.draw(changed(document))
        path.write_text(yaml.safe_dump(other))
        try:
            found, report = load_checked(path, errors_only=True)
        except EnvironmentFileError:
            continue
        if not report.findings:
            document, environment = other, found
    app = cdk.App(context=json.loads((ROOT / "cdk.json").read_text())["context"], analytics_reporting=False)
    HyperPodStack(app, environment.stack_name, environment=environment, folder=folder)
    note(yaml.safe_dump(document, sort_keys=False))
    with unlinted():
        app.synth()
