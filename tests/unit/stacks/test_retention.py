"""What a stack does with data is the file's to say, and Retain unless it says otherwise."""

from pathlib import Path

import pytest
import yaml
from aws_cdk import RemovalPolicy

from holdfast.config import Environment
from holdfast_stacks import removal_policy

SLURM = yaml.safe_load((Path(__file__).parents[3] / "environments/slurm-p5.yaml").read_text())


@pytest.mark.parametrize(
    ("said", "policy"),
    [
        ({}, RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE),
        ({"on_delete": "Retain"}, RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE),
        ({"on_delete": "Delete"}, RemovalPolicy.DESTROY),
    ],
)
def test_data_is_retained_unless_the_file_says_delete(said: dict[str, str], policy: RemovalPolicy) -> None:
    storage = {key: value for key, value in SLURM["storage"].items() if key != "on_delete"}
    environment = Environment.model_validate({**SLURM, "storage": {**storage, **said}})

    assert removal_policy(environment.storage) is policy
