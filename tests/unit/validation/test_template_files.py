"""Templates on disk: files, cloud assemblies with their stages, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.validation import judge
from holdfast.validation.from_template import deployments
from holdfast.validation.template_files import read_templates

CASES = Path(__file__).parents[2] / "cases" / "templates"
DIGEST, NESTED = "b" * 64, "c" * 64


def write(path: Path, body: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(body))


@pytest.fixture
def assembly(tmp_path: Path) -> Path:
    """A stage with one stack: the failures of a real deploy, the scripts in an asset."""
    stage = tmp_path / "assembly-Prod"
    stack = {
        "type": "aws:cloudformation:stack",
        "environment": "aws://unknown-account/us-west-2",
        "properties": {"templateFile": "Demo.template.json"},
    }
    write(
        tmp_path / "manifest.json",
        {"artifacts": {"a": {"type": "cdk:cloud-assembly", "properties": {"directoryName": stage.name}}}},
    )
    write(stage / "manifest.json", {"artifacts": {"Demo": stack, "Demo.assets": {"type": "cdk:asset-manifest"}}})
    (stage / "Demo.template.json").write_text((CASES / "real-deploy.json").read_text())
    files = {
        DIGEST: {"source": {"path": "asset.scripts", "packaging": "zip"}},
        NESTED: {"source": {"path": "DemoNested.nested.template.json", "packaging": "file"}},
        "d" * 64: {"source": {"executable": ["make"]}},
    }
    write(stage / "Demo.assets.json", {"files": files})
    write(stage / "DemoNested.nested.template.json", {"Resources": {}})
    (stage / "asset.scripts").mkdir()
    (stage / "asset.scripts" / "on_create.sh").write_text("#!/bin/bash\n")
    (stage / "asset.scripts" / "provisioning_parameters.json").write_text("{}")
    (stage / "asset.scripts" / "wheel.whl").write_bytes(b"\xff" * 10)
    return tmp_path


def test_an_assembly_is_read_with_its_stages_and_the_files_of_its_assets(assembly: Path) -> None:
    (found,) = deployments(assembly)
    lifecycle = found.cluster.instance_groups[0].lifecycle
    assert lifecycle is not None

    assert (found.account, found.region) == (None, "us-west-2")
    assert [script.name for script in lifecycle.scripts] == [
        "on_create.sh",
        "provisioning_parameters.json",
        "wheel.whl",
    ]
    assert "HF416" in {finding.code for finding in judge(found) if finding.severity == "error"}
    template = assembly / "assembly-Prod" / "Demo.template.json"
    assert found.path == f"{template}#Resources.Cluster.Properties"


def test_one_template_finds_the_assets_beside_it(assembly: Path) -> None:
    (found,) = deployments(assembly / "assembly-Prod" / "Demo.template.json")

    assert found.cluster.instance_groups[0].lifecycle is not None
    assert "HF416" in {finding.code for finding in judge(found) if finding.severity == "error"}


def test_nested_stacks_belong_to_the_template_that_names_them(assembly: Path) -> None:
    path = assembly / "assembly-Prod" / "Demo.template.json"
    assert len(read_templates(path)) == 1

    body = json.loads(path.read_text())
    url = f"https://s3.amazonaws.com/assets/{NESTED}.json"
    body["Resources"]["Nested"] = {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": url}}
    write(path, body)

    assert [template.asset for template in read_templates(path)] == ["", NESTED]


def test_an_asset_that_is_gone_leaves_the_scripts_unknown(assembly: Path) -> None:
    (assembly / "assembly-Prod" / "Demo.assets.json").unlink()
    (found,) = deployments(assembly)

    assert "HF416" in {finding.code for finding in judge(found) if finding.severity == "not-checked"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "got no such file or directory in line 1; allowed: a readable file"),
        ("Resources: {}", "got something that is not JSON (expecting value) in line 1"),
        ('{"Resources": {},\n}', "got something that is not JSON (a comma before }; remove it) in line 1"),
        ("[]", "got a list at the top in line 1; allowed: a CloudFormation template, which has Resources"),
        ("{}", "got no resources in line 1; allowed: a CloudFormation template, which has Resources"),
    ],
)
def test_what_is_no_template_is_refused(text: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.template.json"
    if text is not None:
        path.write_text(text)

    with pytest.raises(ValueError) as caught:
        deployments(path)
    assert str(caught.value).startswith(message)


def test_a_folder_that_is_no_assembly_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"without manifest\.json; allowed: a file, or what cdk synth"):
        deployments(tmp_path)
