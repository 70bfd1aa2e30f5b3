"""Archives of charts that an environment gives, by the names that people have them under."""

import shutil
from pathlib import Path

import aws_cdk as cdk
import yaml
from deployments import ROOT
from unlinted import unlinted

from holdfast.config import load
from holdfast_stacks import HyperPodStack

WITH_COMMIT, WITHOUT = f"aws+sagemaker-hyperpod-cli-{'0a' * 20}", "NVIDIA+k8s-device-plugin"


def test_an_archive_is_found_by_its_repository_with_and_without_a_commit(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "environments" / "scripts", tmp_path / "scripts")
    (tmp_path / "charts").mkdir()
    for name in (WITH_COMMIT, WITHOUT):
        (tmp_path / "charts" / f"{name}.tar.gz").write_bytes(name.encode())
    document = yaml.safe_load((ROOT / "environments" / "eks-p5.yaml").read_text())
    document["eks"]["chart_archives"] = "charts"
    (tmp_path / "e.yaml").write_text(yaml.safe_dump(document))

    app = cdk.App(outdir=str(tmp_path / "out"), analytics_reporting=False)
    stack = HyperPodStack(app, "stack", environment=load(tmp_path / "e.yaml"), folder=tmp_path)
    with unlinted():
        resources = app.synth().get_stack_by_name(stack.stack_name).template["Resources"]

    archives = {
        one["Properties"]["Release"]: one["Properties"]["Archive"]
        for one in resources.values()
        if one["Type"] == "Custom::HoldfastHelmRelease"
    }
    assert "Bucket" in archives["deep-health-check"]
    assert "Bucket" in archives["nvidia-device-plugin"]
    assert archives["nvidia-device-plugin"] != archives["deep-health-check"]
    assert "Url" in archives["aws-efa-k8s-device-plugin"]  # of a repository that is not there
