"""The lifecycle bundle's place depends on its content and on nothing else."""

import os
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import assertions
from aws_cdk import aws_kms as kms

from holdfast_constructs import LifecycleBundle
from holdfast_constructs.lifecycle import collect, content_hash


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    folder = tmp_path / "lifecycle"
    (folder / "steps").mkdir(parents=True)
    (folder / "on_create.sh").write_text("#!/bin/bash\n")
    (folder / "steps" / "one.py").write_text("print(1)\n")
    return folder


def digest(scripts: Path, **config: object) -> str:
    return content_hash(collect(sources=[scripts / "on_create.sh", scripts / "steps"], config=config))


def test_files_lie_under_their_own_names_beside_the_configuration(scripts: Path) -> None:
    files = collect(sources=[scripts / "on_create.sh", scripts / "steps"], config={"b": 1, "a": [2]})

    assert sorted(files) == ["config.json", "on_create.sh", "steps/one.py"]
    assert files["config.json"] == b'{\n  "a": [\n    2\n  ],\n  "b": 1\n}\n'


def test_the_hash_changes_with_a_script_and_with_the_configuration(scripts: Path) -> None:
    before = digest(scripts)
    assert digest(scripts, user="a") != before

    (scripts / "steps" / "one.py").write_text("print(2)\n")
    assert digest(scripts) != before


def test_the_hash_does_not_change_with_times_modes_or_bytecode(scripts: Path) -> None:
    before = digest(scripts)
    os.utime(scripts / "on_create.sh", (1, 1))
    (scripts / "on_create.sh").chmod(0o700)
    (scripts / "steps" / "__pycache__").mkdir()
    (scripts / "steps" / "__pycache__" / "one.cpython-311.pyc").write_bytes(b"x")

    assert digest(scripts) == before


def test_moving_bytes_from_one_file_to_another_changes_the_hash() -> None:
    assert content_hash({"a": b"xy", "b": b""}) != content_hash({"a": b"x", "b": b"y"})


def test_rejects_windows_line_ends(scripts: Path) -> None:
    (scripts / "on_create.sh").write_bytes(b"#!/bin/bash\r\n")

    with pytest.raises(ValueError) as caught:
        digest(scripts)
    assert str(caught.value) == "lifecycle bundle: got CRLF line ends in on_create.sh; allowed: LF; save it with LF"


def test_rejects_windows_line_ends_in_a_script_without_a_suffix(scripts: Path) -> None:
    (scripts / "steps" / "tune").write_bytes(b"#!/usr/bin/env python3\r\n")

    with pytest.raises(ValueError, match="got CRLF line ends in steps/tune"):
        digest(scripts)


def test_scripts_of_the_owner_lie_in_a_folder_of_their_own(scripts: Path, tmp_path: Path) -> None:
    tune = tmp_path / "tune.sh"
    tune.write_text("#!/bin/sh\n")

    assert sorted(collect(sources=[], scripts=[tune], config={})) == ["config.json", "scripts/tune.sh"]
    with pytest.raises(ValueError, match=r"got two scripts named tune\.sh; allowed: names of their own"):
        collect(sources=[], scripts=[tune, tune], config={})


def test_rejects_a_source_that_is_absent(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"got the source .*/none; allowed: a file or folder that exists"):
        collect(sources=[tmp_path / "none"], config={})


def test_rejects_a_bundle_without_its_entry_script(scripts: Path) -> None:
    with pytest.raises(ValueError) as caught:
        LifecycleBundle(cdk.Stack(), "Lifecycle", name="demo", sources=[scripts / "steps"], config={})
    assert str(caught.value) == (
        "lifecycle bundle: got neither on_create nor on_init_complete; allowed: a file of the bundle (config.json)"
    )


def test_rejects_an_entry_script_that_no_source_has(scripts: Path) -> None:
    with pytest.raises(ValueError) as caught:
        LifecycleBundle(
            cdk.Stack(),
            "Lifecycle",
            name="demo",
            sources=[scripts / "on_create.sh"],
            config={},
            on_init_complete="x.sh",
        )
    assert str(caught.value) == (
        "lifecycle bundle: got on_init_complete 'x.sh'; allowed: a file of the bundle (config.json, on_create.sh)"
    )


def test_the_entry_scripts_of_both_modes_lie_in_one_bundle(scripts: Path) -> None:
    (scripts / "on_init_complete.sh").write_text("#!/bin/bash\n")
    sources = [scripts / "on_create.sh", scripts / "on_init_complete.sh"]

    bundle = LifecycleBundle(cdk.Stack(), "Lifecycle", name="demo", sources=sources, config={})

    assert (bundle.on_create, bundle.on_init_complete) == ("on_create.sh", "on_init_complete.sh")


def test_data_of_the_deployment_lies_beside_the_scripts_once_and_leaves_the_place_as_it_is(scripts: Path) -> None:
    stack = cdk.Stack(cdk.App(), "Demo", env=cdk.Environment(account="111122223333", region="us-west-2"))
    sources = [scripts / "on_create.sh", scripts / "steps"]
    bundle = LifecycleBundle(stack, "Lifecycle", name="demo", sources=sources, config={})
    name = cdk.CfnParameter(stack, "Name").value_as_string

    bundle.add_data("mounts.json", [{"dns_name": name}])

    assert bundle.prefix == f"lifecycle/{digest(scripts)}"
    (deployment,) = assertions.Template.from_stack(stack).find_resources("Custom::CDKBucketDeployment").values()
    _, markers = deployment["Properties"]["SourceMarkers"]
    assert [*markers.values()] == [{"Fn::Join": ["", ['"', {"Ref": "Name"}, '"']]}]
    with pytest.raises(ValueError, match=r"got the file mounts\.json twice; allowed: a name of its own"):
        bundle.add_data("mounts.json", [])


def test_rejects_a_configuration_that_is_known_at_deployment_only(scripts: Path) -> None:
    stack = cdk.Stack()
    with pytest.raises(ValueError, match="got config 'image' with a value that is known only at deployment"):
        LifecycleBundle(
            stack, "Lifecycle", name="demo", sources=[scripts / "on_create.sh"], config={"image": f"{stack.account}/x"}
        )


def test_a_bundle_can_have_a_key_and_an_entry_script_of_another_name(scripts: Path) -> None:
    stack = cdk.Stack()
    (scripts / "extend.sh").write_text("#!/bin/bash\n")
    bundle = LifecycleBundle(
        stack,
        "Lifecycle",
        name="demo",
        sources=[scripts / "extend.sh"],
        config={},
        on_init_complete="extend.sh",
        encryption_key=kms.Key(stack, "Key"),
    )

    assert (bundle.on_create, bundle.on_init_complete) == (None, "extend.sh")
    rule = {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms"}, "BucketKeyEnabled": True}
    assertions.Template.from_stack(stack).has_resource_properties(
        "AWS::S3::Bucket", {"BucketEncryption": {"ServerSideEncryptionConfiguration": [rule]}}
    )


def test_the_bundle_is_delivered_under_its_hash_and_old_ones_stay(scripts: Path) -> None:
    app = cdk.App()
    stack = cdk.Stack(app, "Demo", env=cdk.Environment(account="111122223333", region="us-west-2"))
    sources = [scripts / "on_create.sh", scripts / "steps"]
    bundle = LifecycleBundle(stack, "Lifecycle", name="demo", sources=sources, config={})
    template = assertions.Template.from_stack(stack)

    assert bundle.prefix == f"lifecycle/{digest(scripts)}"
    template.has_resource_properties(
        "Custom::CDKBucketDeployment",
        {"DestinationBucketKeyPrefix": bundle.prefix, "Prune": False, "RetainOnDelete": True},
    )
    template.has_resource_properties("AWS::S3::Bucket", {"BucketName": "sagemaker-demo-111122223333-us-west-2"})
    (script,) = Path(app.synth().directory).glob("asset.*/steps/one.py")
    assert script.read_text() == "print(1)\n"


def test_variables_for_jobs_may_be_known_at_deployment_only_and_leave_the_place_as_it_is(scripts: Path) -> None:
    stack = cdk.Stack(cdk.App(), "Demo", env=cdk.Environment(account="111122223333", region="us-west-2"))
    sources = [scripts / "on_create.sh", scripts / "steps"]
    table = cdk.CfnParameter(stack, "Table").value_as_string
    bundle = LifecycleBundle(stack, "Lifecycle", name="demo", sources=sources, config={}, job_environment={"T": table})

    assert bundle.prefix == f"lifecycle/{digest(scripts)}"
    (deployment,) = assertions.Template.from_stack(stack).find_resources("Custom::CDKBucketDeployment").values()
    _, markers = deployment["Properties"]["SourceMarkers"]
    assert [*markers.values()] == [{"Fn::Join": ["", ['"', {"Ref": "Table"}, '"']]}]


def test_a_variable_for_jobs_that_no_shell_takes_is_refused(scripts: Path) -> None:
    stack = cdk.Stack(cdk.App(), "Demo")

    with pytest.raises(ValueError, match="got job_environment variable 'MY-DIR'; allowed: a name of letters"):
        LifecycleBundle(
            stack, "L", name="demo", sources=[scripts / "on_create.sh"], config={}, job_environment={"MY-DIR": "x"}
        )
