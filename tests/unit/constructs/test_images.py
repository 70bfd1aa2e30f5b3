"""Images: references that cannot come to mean something else, and contexts that hold nothing else."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from holdfast_constructs import ContainerImage, ImageRepository

DIGEST = "sha256:" + "0123456789abcdef" * 4


def new_stack() -> cdk.Stack:
    return cdk.Stack(cdk.App(), "Demo", env=cdk.Environment(account="111122223333", region="us-west-2"))


@pytest.fixture
def context(tmp_path: Path) -> Path:
    for name, text in {
        "training/Dockerfile": "FROM scratch\nCOPY common /common\n",
        "training/Dockerfile.dockerignore": "# a comment\n*\n!common\n**/__pycache__\n",
        "common/code.py": "1\n",
        "secret.env": "PASSWORD=x\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def reference(context: Path, **arguments: Any) -> str:
    stack = new_stack()
    image = ContainerImage.from_asset(stack, "Image", directory=context, file="training/Dockerfile", **arguments)
    return json.dumps(stack.resolve(image.uri))


def touch(name: str) -> Callable[[Path], None]:
    def change(context: Path) -> None:
        (context / name).parent.mkdir(exist_ok=True)
        (context / name).write_text("changed\n")

    return change


@pytest.mark.parametrize("name", ["training/Dockerfile", "common/code.py", "common/new.py"])
def test_what_goes_into_an_image_changes_its_reference(context: Path, name: str) -> None:
    before = reference(context)
    touch(name)(context)

    assert reference(context) != before


@pytest.mark.parametrize("name", ["secret.env", "other/Dockerfile", "common/__pycache__/code.pyc"])
def test_what_does_not_go_into_an_image_does_not_change_its_reference(context: Path, name: str) -> None:
    before = reference(context)
    touch(name)(context)

    assert reference(context) == before


def test_arguments_and_target_change_the_reference(context: Path) -> None:
    references = {reference(context), reference(context, build_args={"A": "1"}), reference(context, target="final")}

    assert len(references) == 3


def test_nothing_beside_the_sources_is_sent_to_the_build(context: Path) -> None:
    stack = new_stack()
    ContainerImage.from_asset(stack, "Image", directory=context, file="training/Dockerfile")
    assembly = cdk.App.of(stack)
    assert isinstance(assembly, cdk.App)
    folder = Path(assembly.synth().directory)
    (asset,) = json.loads((folder / "Demo.assets.json").read_text())["dockerImages"].values()
    staged = folder / asset["source"]["directory"]

    assert asset["source"]["platform"] == "linux/amd64"
    sent = {path.relative_to(staged).as_posix() for path in staged.rglob("*") if path.is_file()}
    assert sent == {"common/code.py", "training/Dockerfile"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda at: (at / "training/Dockerfile").unlink(), "training/Dockerfile; allowed: a file that exists"),
        (lambda at: (at / "training/Dockerfile.dockerignore").unlink(), "got no rules in"),
        (touch("training/Dockerfile.dockerignore"), "got a first rule 'changed' in"),
    ],
)
def test_rejects_a_context_without_an_allow_list(context: Path, change: Callable[[Path], None], message: str) -> None:
    change(context)

    with pytest.raises(ValueError, match=re.escape(message)):
        reference(context)


def test_an_image_of_a_repository_is_named_by_its_digest_and_can_be_pulled() -> None:
    stack = new_stack()
    repository = ecr.Repository.from_repository_name(stack, "Imported", "team/training")
    image = ContainerImage.from_repository(repository, digest=DIGEST)
    image.grant_pull(iam.Role(stack, "Node", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com")))
    (policy,) = assertions.Template.from_stack(stack).find_resources("AWS::IAM::Policy").values()
    pull, token = policy["Properties"]["PolicyDocument"]["Statement"]

    assert json.dumps(stack.resolve(image.uri)).endswith(f'/team/training@{DIGEST}"]]}}')
    assert "team/training" in json.dumps(pull["Resource"])
    assert (token["Action"], token["Resource"]) == ("ecr:GetAuthorizationToken", "*")


def test_rejects_a_tag_where_a_digest_belongs() -> None:
    repository = ecr.Repository.from_repository_name(new_stack(), "Imported", "training")

    with pytest.raises(ValueError, match=r"got digest 'latest'; allowed: sha256: and 64 hexadecimal digits"):
        ContainerImage.from_repository(repository, digest="latest")


def test_a_repository_keeps_tags_in_place_scans_and_forgets_only_what_has_no_tag() -> None:
    stack = new_stack()
    ImageRepository(stack, "Images", repository_name="training")
    (resource,) = assertions.Template.from_stack(stack).find_resources("AWS::ECR::Repository").values()
    properties = resource["Properties"]
    (rule,) = json.loads(properties["LifecyclePolicy"]["LifecyclePolicyText"])["rules"]

    assert properties["ImageTagMutability"] == "IMMUTABLE"
    assert properties["ImageScanningConfiguration"] == {"ScanOnPush": True}
    assert rule["selection"]["tagStatus"] == "untagged"
    assert "EncryptionConfiguration" not in properties
    assert resource["DeletionPolicy"] == "RetainExceptOnCreate"


def test_a_repository_takes_a_key_and_goes_with_its_images_when_it_shall() -> None:
    stack = new_stack()
    key = kms.Key(stack, "Key")
    ImageRepository(stack, "Images", encryption_key=key, removal_policy=cdk.RemovalPolicy.DESTROY)
    (resource,) = assertions.Template.from_stack(stack).find_resources("AWS::ECR::Repository").values()

    assert resource["Properties"]["EncryptionConfiguration"]["EncryptionType"] == "KMS"
    assert resource["Properties"]["EmptyOnDelete"] is True
    assert resource["DeletionPolicy"] == "Delete"


def test_the_training_image_is_pinned_and_does_not_run_as_root(repository: Path) -> None:
    text = (repository / "containers/training/Dockerfile").read_text()

    assert re.search(r"^ARG BASE_IMAGE=\S+@sha256:[0-9a-f]{64}$", text, re.MULTILINE)
    assert "sha256sum --check" in text
    assert re.search(r"^USER 10001:10001$", text, re.MULTILINE)


def test_the_training_image_has_the_pytorch_that_the_example_is_tried_with(repository: Path) -> None:
    wanted = re.search(r"^torch==(\S+)$", (repository / "examples/bytelm/requirements.txt").read_text(), re.MULTILINE)
    text = (repository / "containers/training/Dockerfile").read_text()

    assert wanted is not None
    assert f"pytorch/pytorch:{wanted[1]}-cuda" in text


def test_the_training_image_has_the_checksum_that_the_example_is_tried_with(repository: Path) -> None:
    pins = [
        re.findall(r"^xxhash==(\S+)", (repository / folder / "requirements.txt").read_text(), re.MULTILINE)
        for folder in ("containers/training", "examples/bytelm")
    ]

    assert len(pins[0]) == 1
    assert pins[0] == pins[1]


def test_the_training_image_has_every_package_that_is_for_it(repository: Path) -> None:
    containers = repository / "containers"
    copied = re.findall(r"^COPY (\S+)", (containers / "training/Dockerfile").read_text(), re.MULTILINE)
    sent = (containers / "training/Dockerfile.dockerignore").read_text().splitlines()
    packages = {
        path.parent.relative_to(containers).as_posix()
        for folder in ("common", "training")
        for path in (containers / folder).glob("*/__init__.py")
    }

    beside = {"training/holdfast-run", "training/requirements.txt"}
    assert packages | beside == set(copied)
    assert {f"!{path}" for path in packages | beside} <= set(sent)


def test_the_training_image_is_one_that_the_cdk_can_publish(repository: Path) -> None:
    uri = reference(repository / "containers")

    assert re.search(r"/cdk-hnb659fds-container-assets-111122223333-us-west-2:[0-9a-f]{64}", uri)
