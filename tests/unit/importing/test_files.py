"""Files that say a cluster: each is known by its content, and what is wrong with it is one sentence."""

import json
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from holdfast.importing import PARTS, Part, from_samples, render
from holdfast.importing.files import NotUsableError, cluster_of, request_shape, together

ROLE = "arn:aws:iam::111122223333:role/nodes"
GROUP: dict[str, Any] = {"InstanceGroupName": "a", "InstanceCount": 1, "ExecutionRole": ROLE}
REQUEST: dict[str, Any] = {"ClusterName": "mine", "InstanceGroups": [GROUP]}
NETWORK = {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]}
LEGACY = {"version": "1.0.0", "workload_manager": "slurm", "controller_group": "a", "worker_groups": []}
ORCHESTRATOR = {"Eks": {"ClusterArn": "arn:aws:eks:us-west-2:111122223333:cluster/x"}}
TAGS = [{"Key": "team", "Value": "a"}]


def write(folder: Path, name: str, value: Any) -> Path:
    path = folder / name
    path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    return path


def refusal(folder: Path, value: Any, **more: Any) -> str:
    path = write(folder, "cluster.json", value)
    with pytest.raises(NotUsableError) as caught:
        cluster_of(files=[path], **more)
    return str(caught.value).replace(f"{folder}/", "")


def test_parts_in_files_of_their_own_become_one_request(tmp_path: Path) -> None:
    parts = {"groups": [GROUP], "vpc": NETWORK, "orchestrator": ORCHESTRATOR, "tags": TAGS, "legacy": LEGACY}
    files = [write(tmp_path, f"{name}.json", value) for name, value in parts.items()]

    found = cluster_of(files=files, name="mine")

    assert found.request == {**REQUEST, "VpcConfig": NETWORK, "Orchestrator": ORCHESTRATOR, "Tags": TAGS}
    assert found.provisioning == LEGACY


def test_one_group_alone_and_settings_of_the_cluster_alone_are_parts(tmp_path: Path) -> None:
    files = [write(tmp_path, "a.json", GROUP), write(tmp_path, "b.json", {"NodeRecovery": "None", "_why": "short"})]

    assert cluster_of(files=files, name="mine").request == {**REQUEST, "NodeRecovery": "None", "_why": "short"}


def test_an_answer_of_describe_cluster_says_where_it_is(tmp_path: Path) -> None:
    group = {
        "InstanceGroupName": "a",
        "TargetCount": 3,
        "CurrentCount": 2,
        "Status": "InService",
        "ExecutionRole": ROLE,
    }
    answer = {
        "ClusterArn": "arn:aws:sagemaker:us-east-2:111122223333:cluster/abcdefghijkl",
        "ClusterName": "mine",
        "ClusterStatus": "InService",
        "InstanceGroups": [group],
    }

    found = cluster_of(files=[write(tmp_path, "described.json", answer)])

    assert (found.region, found.account) == ("us-east-2", "111122223333")
    assert found.request == {**REQUEST, "InstanceGroups": [{**GROUP, "InstanceCount": 3}]}


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    path = write(tmp_path, "a.json", b"\xef\xbb\xbf" + json.dumps(REQUEST).encode())

    assert cluster_of(files=[path]).request == REQUEST


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "cluster.json is empty"),
        (json.dumps(REQUEST).encode()[:-9], "the text ends in the middle of a value; it was cut"),
        (b'{"InstanceGroups": [\n  // one\n  {}]}', "cluster.json:2: no JSON: a comment, of which JSON has none"),
        (b'{"InstanceGroups": [] # none\n}', "cluster.json:1: no JSON: a comment, of which JSON has none"),
        (b'{"a": [1,\n]}', "cluster.json:1: no JSON: a comma before ]; remove it"),
        (b'{"a": 1,\n\n}', "cluster.json:1: no JSON: a comma before }; remove it"),
        (b'{"a": ,}', "cluster.json:1: no JSON: expecting value"),
        (b'{"ClusterName": "a", "ClusterName": "b"}', "ClusterName stands twice in one object"),
        (b'{"a": 1} {"b": 2}', "something stands after the end of the value"),
        (b'{"a": NaN}', "NaN is no number of JSON"),
        (b"\xff\xfe{\x00}\x00", "cluster.json is UTF-16: save it as UTF-8"),
        (b'{"a": "\xe4"}', "cluster.json:1: bytes that are no UTF-8"),
        (b"[" * 100_000, "cluster.json is nested too deeply"),
        (b" " * (5 << 20), "cluster.json has more than 4 MiB"),
        (b"3", "cluster.json holds something else; allowed: a request of CreateCluster"),
        (b'[{"ParameterKey": "a", "ParameterValue": "b"}]', "holds a list of ParameterKey, ParameterValue; allowed:"),
        (b'{"ClusterName": "a"}', "no instance groups in cluster.json: it is no request of CreateCluster"),
    ],
)
def test_what_is_no_configuration_is_told_in_one_sentence(content: bytes, words: str, tmp_path: Path) -> None:
    message = refusal(tmp_path, content)

    assert words in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"InstanceCount": "4"}, "InstanceGroups[0].InstanceCount is '4'; allowed: a whole number"),
        ({"InstanceCount": True}, "InstanceGroups[0].InstanceCount is true; allowed: a whole number"),
        ({"InstanceCount": 1.5}, "InstanceGroups[0].InstanceCount is 1.5; allowed: a whole number"),
        ({"InstanceType": ["ml.m5.large"]}, "InstanceGroups[0].InstanceType is a list; allowed: a string"),
        ({"LifeCycleConfig": "on_create.sh"}, "LifeCycleConfig is 'on_create.sh'; allowed: an object"),
        ({"InstanceStorageConfigs": {}}, "InstanceStorageConfigs is an object; allowed: a list"),
        ({"ExecutionRole": None}, "ExecutionRole is null; allowed: a string"),
        ({"KubernetesConfig": {"Labels": {"a": 1}}}, "KubernetesConfig.Labels.a is 1; allowed: a string"),
        ({"SlurmConfig": {}}, "SlurmConfig has no NodeType, which CreateCluster requires"),
    ],
)
def test_values_of_another_kind_are_told_by_their_place(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    assert words in refusal(tmp_path, {**REQUEST, "InstanceGroups": [{**GROUP, **changes}]})


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    message = refusal(tmp_path, {**REQUEST, "NodeRecovery": 1, "InstanceGroups": [{"InstanceGroupName": 2}]})

    assert len(message.splitlines()) == 5


def test_two_groups_of_one_name_are_refused(tmp_path: Path) -> None:
    assert "the name a; each needs its own" in refusal(tmp_path, {**REQUEST, "InstanceGroups": [GROUP, GROUP]})


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (REQUEST, [GROUP], "got InstanceGroups in"),
        (LEGACY, LEGACY, "is a second provisioning_parameters.json"),
    ],
)
def test_two_files_that_say_the_same_are_refused(first: Any, second: Any, words: str, tmp_path: Path) -> None:
    write(tmp_path, "first.json", first)

    with pytest.raises(NotUsableError, match=words):
        cluster_of(files=[tmp_path / "first.json", write(tmp_path, "second.json", second)])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"worker_groups": "a"}, "worker_groups is no list"),
        ({"worker_groups": [{"partition_name": "a"}]}, "worker_groups[0] names no instance_group_name"),
        ({"controller_group": 1}, "controller_group is no string"),
        ({"fsx_dns_name": []}, "fsx_dns_name is no string"),
    ],
)
def test_a_broken_provisioning_file_is_refused(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    assert words in refusal(tmp_path, {**LEGACY, **changes})


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotUsableError, match=r"none\.json cannot be read: no such file or directory"):
        cluster_of(files=[tmp_path / "none.json"])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["ClusterName", "InstanceGroups", "InstanceGroupName", "InstanceCount", "ExecutionRole", "ClusterArn",
             "ClusterStatus", "worker_groups", "Subnets", "SecurityGroupIds", "Eks", "Key", "LifeCycleConfig", "a"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(value=VALUES)
def test_whatever_a_file_holds_is_read_or_refused(value: Any) -> None:
    with suppress(NotUsableError):
        together([("cluster.json", value)], name="a")


WORDS_OF_THE_SERVICE = (
    *("arn:aws:iam::111122223333:role/nodes", "arn:aws:eks:us-west-2:111122223333:cluster/x", "s3://sagemaker-a/b"),
    *(
        "ml.p5.48xlarge",
        "fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com",
        "subnet-0123456789abcdef0",
        "/fsx",
        "",
        "a",
    ),
)


def some(shape: Any, chance: Random) -> Any:
    """A value that CreateCluster's model allows, with about a third of the members that may be left out."""
    kind = shape.type_name
    if kind == "structure":
        names = [name for name in shape.members if name in shape.required_members or chance.random() < 0.3]
        return {name: some(shape.members[name], chance) for name in names}
    if kind == "list":
        return [some(shape.member, chance) for _ in range(chance.randrange(3))]
    if kind == "map":
        return {chance.choice(WORDS_OF_THE_SERVICE): some(shape.value, chance) for _ in range(chance.randrange(2))}
    if kind == "string":
        return chance.choice(shape.enum or WORDS_OF_THE_SERVICE)
    if kind == "boolean":
        return chance.random() < 0.5
    return chance.randrange(10) if kind == "integer" else "2027-01-31"


@pytest.mark.parametrize("seed", range(8))
def test_every_request_that_the_service_can_read_becomes_a_file(seed: int) -> None:
    read = 0
    for number in range(25):
        request = some(request_shape(), Random(100 * seed + number))
        groups = request.setdefault("InstanceGroups", [dict(GROUP)])
        for index, group in enumerate(groups):
            group["InstanceGroupName"] = f"group-{index}"
        try:
            found = together([("cluster.json", request)], name="mine")
        except NotUsableError:
            continue
        read += 1
        for create in (frozenset[Part](), frozenset(PARTS)):
            imported = from_samples(found.request, create=create)
            assert yaml.safe_load(render(imported, origin="the test")) == imported.document
    assert read > 5
