"""Session documents with Run As: what the construct makes, and what the rules find in a template."""

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions

from holdfast.validation.from_template import check_template
from holdfast_constructs import SessionDocument


def synthesised() -> dict[str, Any]:
    stack = cdk.Stack(cdk.App(), "Sessions")
    SessionDocument(stack, "Document", name="holdfast-lab", default_user="trainer")
    found: dict[str, Any] = assertions.Template.from_stack(stack).to_json()
    return found


def test_a_change_makes_a_new_version_because_a_named_document_cannot_be_replaced() -> None:
    (resource,) = synthesised()["Resources"].values()

    assert resource["Type"] == "AWS::SSM::Document"
    assert resource["Properties"] == {
        "Name": "holdfast-lab",
        "DocumentType": "Session",
        "UpdateMethod": "NewVersion",
        "Content": {
            "schemaVersion": "1.0",
            "description": "Shells as a user of the node",
            "sessionType": "Standard_Stream",
            "inputs": {
                "s3EncryptionEnabled": True,
                "cloudWatchEncryptionEnabled": True,
                "cloudWatchStreamingEnabled": False,
                "runAsEnabled": True,
                "runAsDefaultUser": "trainer",
            },
        },
    }


@pytest.mark.parametrize(
    ("inputs", "codes"),
    [
        ({"runAsEnabled": True, "runAsDefaultUser": "trainer"}, []),
        ({"runAsEnabled": True, "runAsDefaultUser": "root"}, ["HF363"]),
        ({"runAsEnabled": True, "runAsDefaultUser": ""}, ["HF363"]),
        ({"runAsEnabled": True}, ["HF363"]),
        ({"runAsEnabled": False, "runAsDefaultUser": "root"}, []),
    ],
)
def test_a_template_is_judged_by_the_user_that_it_names(
    inputs: dict[str, Any], codes: list[str], tmp_path: Path
) -> None:
    template = synthesised()
    (resource,) = template["Resources"].values()
    resource["Properties"]["Content"]["inputs"] = inputs
    (tmp_path / "template.json").write_text(json.dumps(template))

    found = check_template(tmp_path / "template.json", linted=False).findings

    assert [each.code for each in found if each.code in ("HF363", "HF364")] == codes
