"""Archives of charts that an environment gives, by the names that people have them under."""

import shutil
from pathlib import Path

import aws_cdk as cdk
import pytest
import yaml
from deployments import ROOT

from holdfast.config import load
from holdfast_stacks import HyperPodStack

REPOSITORY = "aws+sagemaker-hyperpod-cli"


@pytest.mark.parametrize("name", [REPOSITORY, f"{REPOSITORY}-{'0a' * 20}"], ids=["repository", "and-commit"])
def test_an_archive_is_found_by_its_repository(tmp_path: Path, name: str) -> None:
    shutil.copytree(ROOT / "environments" / "scripts", tmp_path / "scripts")
    (tmp_path / "charts").mkdir()
    (tmp_path / "charts" / f"{name}.tar.gz").write_bytes(b"an archive")
    document = yaml.safe_load((ROOT / "environments" / "eks-p5.yaml").read_text())
    document["eks"]["chart_archives"] = "charts"
    (tmp_path / "e.yaml").write_text(yaml.safe_dump(document))

    app = cdk.App(outdir=str(tmp_path / "out"), analytics_reporting=False)
    stack = HyperPodStack(app, "stack", environment=load(tmp_path / "e.yaml"), folder=tmp_path)
    resources = app.synth().get_stack_by_name(stack.stack_name).template["Resources"]

    archives = {
        one["Properties"]["Release"]: one["Properties"]["Archive"]
        for one in resources.values()
        if one["Type"] == "Custom::HoldfastHelmRelease"
    }
    assert "Bucket" in archives["deep-health-check"]
    assert "Url" in archives["nvidia-device-plugin"]  # of a repository that is not there
