"""An environment is deployed on the embedded AWS, and imported from it again: what AWS knows is the same."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from embedded_stack import Cloud, deploy
from typer.testing import CliRunner

from holdfast.cli._diff import diff
from holdfast.config import Environment, Slurm, load
from holdfast.importing import deployed_environment, from_observed, read_cluster, render
from holdfast.localcloud._localcloud import ACCOUNT
from holdfast.localcloud.aws import serve
from holdfast.validation.updates import compare

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ("local", "slurm-p5", "eks-p5", "full", "full-slurm")
AWS_DOES_NOT_KNOW = ("allow_replacement", "goodput", "images", "observability", "suppress")
"""Settings of Holdfast's own, or of what is beside the cluster."""


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def deployed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cloud, Any]]:
    with serve(home=tmp_path_factory.mktemp("cloud"), hyperpod="simulated") as running:
        written = load(ROOT / "environments" / f"{request.param}.yaml")
        cloud = Cloud(running, region=written.region)
        environment = standing_on(cloud, written)
        deploy(cloud, environment, outdir=tmp_path_factory.mktemp("assembly"))
        yield cloud, environment
        cloud.close()


def standing_on(cloud: Cloud, written: Environment) -> Environment:
    """The environment with what it refers to: the network, keys and roles that it names are made, and named anew."""
    ec2 = cloud.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    ids = {"vpc-0123456789abcdef0": vpc}
    for number, (cidr, zone) in enumerate((("10.1.0.0/17", "a"), ("10.1.128.0/24", "a"), ("10.1.129.0/24", "b"))):
        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock=cidr, AvailabilityZone=f"{written.region}{zone}")["Subnet"]
        ids[f"subnet-0123456789abcdef{number}"] = subnet["SubnetId"]
    group = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=vpc)["GroupId"]
    itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=itself)
    ec2.authorize_security_group_egress(GroupId=group, IpPermissions=itself)
    ids["sg-0123456789abcdef0"] = group
    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    address = ec2.allocate_address()["AllocationId"]
    public = ec2.create_subnet(VpcId=vpc, CidrBlock="10.1.130.0/24", AvailabilityZone=f"{written.region}a")["Subnet"]
    nat = ec2.create_nat_gateway(SubnetId=public["SubnetId"], AllocationId=address)["NatGateway"]["NatGatewayId"]
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", NatGatewayId=nat)
    ec2.associate_route_table(RouteTableId=table, SubnetId=ids["subnet-0123456789abcdef0"])
    ids["rtb-0123456789abcdef0"] = table
    ids["1234abcd-12ab-34cd-56ef-1234567890ab"] = cloud.client("kms").create_key()["KeyMetadata"]["KeyId"]
    cloud.client("cloudwatch").put_metric_alarm(
        AlarmName="training-throughput", ComparisonOperator="LessThanThreshold", EvaluationPeriods=1
    )
    cloud.client("iam").create_role(RoleName="PlatformAdmin", AssumeRolePolicyDocument=json.dumps({"Statement": []}))
    ids[written.account] = ACCOUNT
    text = written.model_dump_json()
    for name, real in ids.items():
        text = text.replace(name, real)
    return Environment.model_validate_json(text)


def known_to_aws(environment: Environment) -> dict[str, Any]:
    """The environment without what nobody can read from AWS; spares are nodes like the others there."""
    document = environment.model_dump(mode="json", exclude=set(AWS_DOES_NOT_KNOW))
    document["lifecycle"].pop("mode")
    groups = environment.cluster.instance_groups
    for group, settings in zip(document["cluster"]["instance_groups"], groups, strict=True):
        group["instance_count"] += group.pop("spare_count")
        group["lifecycle_mode"] = environment.lifecycle_mode(settings)  # whichever of the two places said it
        if environment.orchestrator == "eks":
            group.pop("mount_lustre")  # pods mount it, and the API does not know
    if environment.orchestrator == "slurm" and document["slurm"] is None:
        document["slurm"] = Slurm().model_dump(mode="json")
    document["storage"].pop("on_delete")
    document["lifecycle"].pop("scripts")
    if document["eks"] and document["eks"]["task_governance"]:
        document["eks"]["task_governance"]["teams"].sort(key=lambda team: team["name"])  # made in parallel
    if document["network"]["existing"] is not None:
        document["network"]["existing"].pop("control_plane_subnet_ids")  # Slurm's are those of its database alone
    return document


def test_what_is_imported_is_what_was_deployed(deployed: tuple[Cloud, Environment]) -> None:
    cloud, environment = deployed
    observed = read_cluster(
        cloud.client,
        cluster_name=environment.cluster_name,
        region=environment.region,
        embedded=environment.cloud == "embedded",
    )

    imported = from_observed(observed)
    again = Environment.model_validate(yaml.safe_load(render(imported, origin="the test")))

    assert known_to_aws(again) == known_to_aws(environment)
    assert observed.unasked == ()


def test_the_stack_tells_the_environment_that_it_was_made_of(deployed: tuple[Cloud, Environment]) -> None:
    cloud, environment = deployed

    found = deployed_environment(stack_name=environment.stack_name, region=environment.region, client=cloud.reach)

    assert found.state == "read"
    assert found.environment is not None
    assert compare(found.environment, environment) == []


def test_diff_compares_a_file_with_the_stack_through_its_endpoint(
    deployed: tuple[Cloud, Environment], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud, environment = deployed
    monkeypatch.setenv("HOLDFAST_PORT", cloud.endpoint.rpartition(":")[2])
    monkeypatch.setenv("HOLDFAST_HOME", str(cloud.home))
    variables = {"ENDPOINT_URL": "endpoint_url", "ACCESS_KEY_ID": "aws_access_key_id"}
    for name, value in {**variables, "SECRET_ACCESS_KEY": "aws_secret_access_key"}.items():
        monkeypatch.setenv(f"AWS_{name}", cloud.reach[value])
    document = environment.model_dump(mode="json", exclude_none=True)
    document["storage"]["lustre"]["capacity_gib"] *= 2
    gone = document["cluster"]["instance_groups"].pop()["name"]
    path = tmp_path / "changed.yaml"
    path.write_text(yaml.safe_dump(document))
    app = typer.Typer()
    app.command()(diff)

    answer = CliRunner().invoke(app, [str(path), "--json"])

    assert answer.exit_code == 1
    assert [(change["path"], change["effect"]) for change in json.loads(answer.stdout)["changes"]] == [
        (f"cluster.instance_groups.{gone}", "replaces the instance group"),
        ("storage.lustre.capacity_gib", "in place"),
    ]


def test_a_stack_that_is_not_there_is_told_from_one_that_cannot_be_asked(deployed: tuple[Cloud, Environment]) -> None:
    cloud, environment = deployed
    absent = deployed_environment(stack_name="holdfast-nobody", region=environment.region, client=cloud.reach)
    silent = deployed_environment(
        stack_name="holdfast-nobody",
        region=environment.region,
        client={**cloud.reach, "endpoint_url": "http://localhost:9"},
        timeout_s=0.2,
    )

    assert (absent.state, absent.why) == ("absent", f"there is no stack holdfast-nobody in {environment.region}")
    assert silent.state == "not checked"
    assert "localhost:9" in silent.why
