"""Session documents on the embedded AWS: a change of the content is the new default version of the same document."""

import json
from pathlib import Path
from typing import Any

import boto3
import pytest

from holdfast.localcloud.aws import serve
from holdfast.validation.translation import session_document


def body(user: str) -> str:
    content = session_document(default_user=user)
    properties = {"Name": "lab", "DocumentType": "Session", "Content": content, "UpdateMethod": "NewVersion"}
    return json.dumps({"Resources": {"Sessions": {"Type": "AWS::SSM::Document", "Properties": properties}}})


def test_a_changed_document_is_a_new_version_and_the_default(tmp_path: Path) -> None:
    with serve(home=tmp_path, hyperpod="simulated") as running:
        stacks: Any = boto3.client("cloudformation", region_name="us-west-2", **running.client_arguments)
        documents: Any = boto3.client("ssm", region_name="us-west-2", **running.client_arguments)
        stacks.create_stack(StackName="s", TemplateBody=body("trainer"))
        stacks.get_waiter("stack_create_complete").wait(StackName="s", WaiterConfig={"Delay": 1})
        stacks.update_stack(StackName="s", TemplateBody=body("alice"))
        stacks.get_waiter("stack_update_complete").wait(StackName="s", WaiterConfig={"Delay": 1})

        found = documents.get_document(Name="lab")
        assert (found["DocumentType"], found["DocumentVersion"]) == ("Session", "2")
        assert json.loads(found["Content"])["inputs"]["runAsDefaultUser"] == "alice"

        stacks.delete_stack(StackName="s")
        stacks.get_waiter("stack_delete_complete").wait(StackName="s", WaiterConfig={"Delay": 1})
        with pytest.raises(documents.exceptions.InvalidDocument):
            documents.get_document(Name="lab")
        for client in (stacks, documents):
            client.close()
