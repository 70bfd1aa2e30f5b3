"""FSx for Lustre of the embedded AWS, asked through boto3."""

import time

import boto3
import pytest
from botocore.exceptions import ClientError

from holdfast.localcloud.aws import serve


@pytest.fixture(scope="module")
def aws(tmp_path_factory):
    with serve(home=tmp_path_factory.mktemp("cloud"), hyperpod="simulated") as running:
        yield running


@pytest.fixture(scope="module")
def client(aws):
    made = {}

    def get(service):
        if service not in made:
            made[service] = boto3.client(
                service,
                region_name="us-west-2",
                **aws.client_arguments,
            )
        return made[service]

    yield get
    for one in made.values():
        one.close()


@pytest.fixture(scope="module")
def subnet(client):
    vpc = client("ec2").create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    client("s3").create_bucket(Bucket="data", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    return client("ec2").create_subnet(VpcId=vpc, CidrBlock="10.1.0.0/24")["Subnet"]["SubnetId"]


def wanted(subnet, **changes):
    lustre = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250, **changes.pop("lustre", {})}
    return {
        "FileSystemType": "LUSTRE",
        "StorageCapacity": 1200,
        "SubnetIds": [subnet],
        "LustreConfiguration": {key: value for key, value in lustre.items() if value is not None},
        **changes,
    }


@pytest.fixture
def file_system(client, subnet):
    made = client("fsx").create_file_system(**wanted(subnet, Tags=[{"Key": "a", "Value": "b"}]))["FileSystem"]
    yield made
    client("fsx").delete_file_system(FileSystemId=made["FileSystemId"])


PROVISIONED = {"Mode": "USER_PROVISIONED", "Iops": 1500}


def refusal(call, **arguments):
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    return caught.value.response["Error"]["Code"], caught.value.response["Error"]["Message"]


def eventually(look, goal):
    deadline = time.monotonic() + 60
    while (seen := look()) != goal:
        assert time.monotonic() < deadline, seen
        time.sleep(0.05)


def test_a_file_system_is_created_and_becomes_available(client, file_system, subnet):
    fs_id = file_system["FileSystemId"]

    def told():
        return client("fsx").describe_file_systems(FileSystemIds=[fs_id])["FileSystems"][0]

    assert file_system["Lifecycle"] == "CREATING"
    eventually(lambda: told()["Lifecycle"], "AVAILABLE")
    assert told()["DNSName"] == f"{fs_id}.fsx.us-west-2.amazonaws.com"
    assert told()["ResourceARN"] == f"arn:aws:fsx:us-west-2:123456789012:file-system/{fs_id}"
    assert told()["FileSystemTypeVersion"] == "2.15"
    assert 1 <= len(told()["LustreConfiguration"]["MountName"]) <= 8
    assert told()["Tags"] == [{"Key": "a", "Value": "b"}]
    interface = client("ec2").describe_network_interfaces(NetworkInterfaceIds=told()["NetworkInterfaceIds"])
    assert interface["NetworkInterfaces"][0]["SubnetId"] == subnet


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"StorageCapacity": 1000}, "BadRequest", "1200 and multiples of 2400"),
        ({"StorageCapacity": 3600}, "BadRequest", "3600 GiB is not valid"),
        ({"lustre": {"PerUnitStorageThroughput": 333}}, "InvalidPerUnitStorageThroughput", "125, 250, 500, 1000"),
        ({"lustre": {"PerUnitStorageThroughput": None}}, "BadRequest", "125, 250, 500, 1000"),
        ({"lustre": {"ImportPath": "s3://data"}}, "BadRequest", "ImportPath is not supported"),
        ({"lustre": {"EfaEnabled": True}}, "BadRequest", "MetadataConfiguration"),
        ({"lustre": {"MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 1600}}}, "BadRequest", "1500, 3000"),
        ({"StorageCapacity": 2400, "lustre": {"MetadataConfiguration": PROVISIONED}}, "BadRequest", "than the 3000"),
        ({"FileSystemTypeVersion": "2.10"}, "BadRequest", "2.12, 2.15"),
        ({"SubnetIds": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]}, "BadRequest", "Exactly one subnet"),
        ({"SubnetIds": ["subnet-0123456789abcdef0"]}, "InvalidNetworkSettings", "subnet-0123456789abcdef0"),
        ({"SecurityGroupIds": ["sg-0123456789abcdef0"]}, "InvalidNetworkSettings", "sg-0123456789abcdef0"),
        ({"StorageType": "TAPE"}, "ValidationException", "enum value set: [SSD, HDD, INTELLIGENT_TIERING]"),
        ({"FileSystemType": "WINDOWS"}, "NotImplementedException", "not implemented by the embedded AWS"),
    ],
)
def test_impossible_file_systems_are_refused(client, subnet, changes, code, words):
    said = refusal(client("fsx").create_file_system, **wanted(subnet, **changes))

    assert said[0] == code
    assert words in said[1]


def test_capacity_only_grows(client, file_system):
    fs_id = file_system["FileSystemId"]
    grown = client("fsx").update_file_system(FileSystemId=fs_id, StorageCapacity=2400)["FileSystem"]

    assert grown["StorageCapacity"] == 2400
    assert "only be increased" in refusal(client("fsx").update_file_system, FileSystemId=fs_id, StorageCapacity=1200)[1]


def test_capacity_waits_for_the_metadata_iops_that_it_needs(client, subnet):
    fsx = client("fsx")
    made = fsx.create_file_system(**wanted(subnet, lustre={"MetadataConfiguration": PROVISIONED}))["FileSystem"]

    def update(capacity=None, iops=None):
        more = {"MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": iops}}
        given = {"StorageCapacity": capacity} if capacity else {}
        given |= {"LustreConfiguration": more} if iops else {}
        return {"FileSystemId": made["FileSystemId"], **given}

    assert "less than the 3000" in refusal(fsx.update_file_system, **update(capacity=2400))[1]
    assert "in one request" in refusal(fsx.update_file_system, **update(capacity=2400, iops=3000))[1]
    fsx.update_file_system(**update(iops=3000))
    assert fsx.update_file_system(**update(capacity=2400))["FileSystem"]["StorageCapacity"] == 2400
    assert "only be increased" in refusal(fsx.update_file_system, **update(iops=1500))[1]


def test_associations_follow_their_rules_and_go_with_the_file_system(client, subnet):
    fsx = client("fsx")
    fs_id = fsx.create_file_system(**wanted(subnet))["FileSystem"]["FileSystemId"]

    def link(path, prefix, **more):
        return {"FileSystemId": fs_id, "FileSystemPath": path, "DataRepositoryPath": f"s3://data/{prefix}", **more}

    policy = {"AutoImportPolicy": {"Events": ["NEW", "CHANGED"]}}
    made = fsx.create_data_repository_association(**link("/data", "data", S3=policy))["Association"]
    create = fsx.create_data_repository_association

    assert made["S3"] == policy
    assert "overlaps '/data'" in refusal(create, **link("/data/sub", "other"))[1]
    assert "overlaps 's3://data/data'" in refusal(create, **link("/other", "data/sub"))[1]
    assert "must begin" in refusal(create, **link("other", "other"))[1]
    assert (
        "bucket nowhere"
        in refusal(create, FileSystemId=fs_id, FileSystemPath="/x", DataRepositoryPath="s3://nowhere/x")[1]
    )
    for number in range(7):
        create(**link(f"/n{number}", f"n{number}"))
    assert refusal(create, **link("/one", "more"))[0] == "ServiceLimitExceeded"

    changed = fsx.update_data_repository_association(
        AssociationId=made["AssociationId"], S3={"AutoExportPolicy": {"Events": ["NEW"]}}
    )["Association"]
    assert set(changed["S3"]) == {"AutoImportPolicy", "AutoExportPolicy"}
    fsx.delete_file_system(FileSystemId=fs_id)
    eventually(lambda: fsx.describe_data_repository_associations()["Associations"], [])
    assert refusal(fsx.describe_file_systems, FileSystemIds=[fs_id])[0] == "FileSystemNotFound"


def test_tags_can_be_changed(client, file_system):
    fsx, arn = client("fsx"), file_system["ResourceARN"]
    fsx.tag_resource(ResourceARN=arn, Tags=[{"Key": "c", "Value": "d"}])
    fsx.untag_resource(ResourceARN=arn, TagKeys=["a"])

    assert fsx.list_tags_for_resource(ResourceARN=arn)["Tags"] == [{"Key": "c", "Value": "d"}]


def test_a_repeated_request_makes_nothing_twice(client, subnet):
    fsx = client("fsx")
    made = [
        fsx.create_file_system(**wanted(subnet, ClientRequestToken="once"))["FileSystem"]["FileSystemId"]
        for _ in range(2)
    ]
    fsx.delete_file_system(FileSystemId=made[0])

    assert made[0] == made[1]
