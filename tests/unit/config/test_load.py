"""An environment file is either a model or every reason why not, each with its line and what to do."""

from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.config import Environment, EnvironmentFileError, load

VALID = """\
name: demo
account: "111122223333"
region: us-west-2
network:
  cidr: 10.1.0.0/16
  availability_zone: us-west-2a
cluster:
  instance_groups:
    - name: controller
      instance_type: ml.m5.xlarge
      instance_count: 1
      slurm: {node_type: Controller}
    - name: workers
      instance_type: ml.p5.48xlarge
      instance_count: 4
      slurm: {node_type: Compute, partition: dev}
storage:
  lustre:
    capacity_gib: 1200
    throughput_mbps_per_tib: 250
"""

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a file into the current folder, so that messages begin with its bare name."""
    monkeypatch.chdir(tmp_path)

    def write_file(text: str) -> Path:
        path = tmp_path / "demo.yaml"
        path.write_text(text)
        return path

    return write_file


def problems_of(path: Path) -> list[str]:
    with pytest.raises(EnvironmentFileError) as caught:
        load(path)
    return [str(problem) for problem in caught.value.problems]


def test_a_short_file_gets_the_documented_defaults(write: Write) -> None:
    environment = load(write(VALID))

    assert environment.cloud == "aws"
    assert environment.network.egress == "nat"
    assert environment.cluster.node_recovery == "Automatic"
    assert environment.orchestrator == "slurm"
    assert environment.storage.on_delete == "Retain"
    assert environment.storage.lustre is not None
    assert environment.storage.lustre.mount_path == "/fsx"
    assert environment.images is None
    assert environment.lifecycle.users == ()


def test_names_and_counts_are_derived(write: Write) -> None:
    environment = load(write(VALID.replace("instance_count: 4", "instance_count: 4\n      spare_count: 2")))

    assert (environment.stack_name, environment.cluster_name) == ("holdfast-demo", "demo")
    assert [group.total_count for group in environment.cluster.instance_groups] == [1, 6]


def test_a_cluster_can_have_a_name_of_its_own(write: Write) -> None:
    environment = load(write(VALID.replace("cluster:\n", "cluster:\n  name: other\n")))

    assert (environment.stack_name, environment.cluster_name) == ("holdfast-demo", "other")


def test_an_unknown_setting_that_is_the_first_word_of_a_known_one_means_that(write: Write) -> None:
    [problem] = problems_of(write(VALID.replace("instance_count: 4", "instance_count: 4\n      spares: 2")))

    assert problem.startswith("demo.yaml:16: cluster.instance_groups.1.spares: got an unknown setting; allowed: name, ")
    assert problem.endswith("; did you mean spare_count?")


def test_a_misspelled_setting_is_one_mistake(write: Write) -> None:
    [problem] = problems_of(write(VALID.replace("instance_count: 4", "instnace_count: 4")))

    assert problem.endswith("; did you mean instance_count?")


def test_a_size_that_a_family_has_not_means_the_nearest_one(write: Write) -> None:
    [problem] = problems_of(write(VALID.replace("ml.p5.48xlarge", "ml.p5.96xlarge")))

    assert problem.endswith("; write instance_type: ml.p5.48xlarge")


def test_a_file_without_storage_has_the_defaults(write: Write) -> None:
    assert load(write(VALID.partition("storage:")[0])).storage.lustre is None


@pytest.mark.parametrize("name", ["local", "slurm-p5"])
def test_the_environments_of_the_repository_are_valid(name: str, repository: Path) -> None:
    environment = load(repository / "environments" / f"{name}.yaml")

    assert isinstance(environment, Environment)
    assert environment.name == name


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(
            "instance_count: 4",
            "instance_count: four",
            'demo.yaml:15: cluster.instance_groups.1.instance_count: got "four"; '
            "allowed: a whole number from 0 to 6758; write instance_count: 4",
            id="number-in-words",
        ),
        pytest.param(
            "instance_count: 4",
            'instance_count: "12"',
            'demo.yaml:15: cluster.instance_groups.1.instance_count: got "12"; '
            "allowed: a whole number from 0 to 6758; write instance_count: 12",
            id="number-in-quotes",
        ),
        pytest.param(
            "instance_count: 4",
            "instance_count: 4.0",
            "demo.yaml:15: cluster.instance_groups.1.instance_count: got 4.0; "
            "allowed: a whole number from 0 to 6758; write instance_count: 4",
            id="number-with-a-point",
        ),
        pytest.param(
            "instance_count: 4",
            "instance_count: true",
            "demo.yaml:15: cluster.instance_groups.1.instance_count: got true; "
            "allowed: a whole number from 0 to 6758; write instance_count: 4",
            id="truth-value-for-a-number",
        ),
        pytest.param(
            "instance_count: 4",
            "instance_count: -1",
            "demo.yaml:15: cluster.instance_groups.1.instance_count: got -1; "
            "allowed: a whole number from 0 to 6758; write instance_count: 0 or more",
            id="count-below-zero",
        ),
        pytest.param(
            "instance_count: 4",
            "instance_count: 1:30",
            "demo.yaml:15: cluster.instance_groups.1.instance_count: got 1:30, which YAML reads as 90; "
            'allowed: numbers of decimal digits; text in quotes; write 90, or "1:30" where text is meant',
            id="number-of-base-60",
        ),
        pytest.param(
            "instance_count: 4",
            "instance_count: 010",
            "demo.yaml:15: cluster.instance_groups.1.instance_count: got 010, which YAML reads as 8; "
            'allowed: numbers of decimal digits; text in quotes; write 8, or "010" where text is meant',
            id="number-of-base-8",
        ),
        pytest.param(
            "instance_count: 4",
            "instance_count: 6759",
            "demo.yaml:15: cluster.instance_groups.1.instance_count: got 6759; "
            "allowed: a whole number from 0 to 6758; write instance_count: 6758 or less",
            id="count-above-the-limit",
        ),
        pytest.param(
            "instance_count: 4",
            "instance_count:",
            "demo.yaml:15: cluster.instance_groups.1.instance_count: got null; "
            "allowed: a whole number from 0 to 6758; write instance_count: 4",
            id="no-value",
        ),
        pytest.param(
            'account: "111122223333"',
            "account: 111122223333",
            "demo.yaml:2: account: got 111122223333; allowed: the 12 digits of an AWS account, in quotes; "
            'write account: "111122223333"',
            id="account-without-quotes",
        ),
        pytest.param(
            'account: "111122223333"',
            "account: 011122223333",
            "demo.yaml:2: account: got 011122223333; allowed: the 12 digits of an AWS account, in quotes; "
            'write account: "011122223333"',
            id="account-that-yaml-reads-as-octal",
        ),
        pytest.param(
            "region: us-west-2",
            "regoin: us-west-2",
            "demo.yaml:3: regoin: got an unknown setting; allowed: name, cloud, account, region, "
            "encryption, permissions_boundary, termination_protection, network, cluster, slurm, eks, "
            "storage, lifecycle, sessions, images, observability, health, goodput, allow_replacement, suppress, "
            "stand_ins; did you mean region?",
            id="misspelt-setting",
        ),
        pytest.param(
            "partition: dev",
            "partition: dev, weight: 3",
            "demo.yaml:16: cluster.instance_groups.1.slurm.weight: got an unknown setting; "
            "allowed: node_type, partition; remove weight",
            id="unknown-setting",
        ),
        pytest.param(
            "node_type: Compute",
            "node_type: compute",
            'demo.yaml:16: cluster.instance_groups.1.slurm.node_type: got "compute"; '
            "allowed: one of Controller, Login, Compute; write node_type: Compute",
            id="wrong-case",
        ),
        pytest.param(
            "ml.p5.48xlarge",
            "p5.48xlarg",
            'demo.yaml:14: cluster.instance_groups.1.instance_type: got "p5.48xlarg"; '
            "allowed: an instance type that HyperPod offers; write instance_type: ml.p5.48xlarge",
            id="instance-type-misspelt",
        ),
        pytest.param(
            "name: workers",
            "name: my_workers",
            'demo.yaml:13: cluster.instance_groups.1.name: got "my_workers"; allowed: 1 to 63 letters, digits and '
            "hyphens, beginning and ending with a letter or digit; write name: my-workers",
            id="name-with-underscore",
        ),
        pytest.param(
            "partition: dev",
            "partition: ml.p5.48xlarge",
            'demo.yaml:16: cluster.instance_groups.1.slurm.partition: got "ml.p5.48xlarge"; allowed: 1 to 63 '
            "letters, digits and hyphens, beginning and ending with a letter or digit; write partition: ml-p5-48xlarge",
            id="partition-with-dots",
        ),
        pytest.param(
            "capacity_gib: 1200",
            "capacity_gib: 1300",
            "demo.yaml:19: storage.lustre.capacity_gib: got 1300; allowed: 1200, or a multiple of 2400; "
            "write capacity_gib: 2400",
            id="capacity",
        ),
        pytest.param(
            "capacity_gib: 1200",
            "capacity_gib: 4800GiB",
            'demo.yaml:19: storage.lustre.capacity_gib: got "4800GiB"; allowed: 1200, or a multiple of 2400; '
            "write capacity_gib: 4800",
            id="capacity-with-its-unit",
        ),
        pytest.param(
            "region: us-west-2",
            "region: us-west2",
            'demo.yaml:3: region: got "us-west2"; allowed: the name of an AWS region; write region: us-west-2',
            id="region-without-a-hyphen",
        ),
        pytest.param(
            "throughput_mbps_per_tib: 250",
            "throughput_mbps_per_tib: 200",
            "demo.yaml:20: storage.lustre.throughput_mbps_per_tib: got 200; allowed: one of 125, 250, 500, 1000; "
            "write throughput_mbps_per_tib: 250",
            id="throughput",
        ),
        pytest.param(
            "cidr: 10.1.0.0/16",
            "cidr: 10.1.3.0/16",
            'demo.yaml:5: network.cidr: got "10.1.3.0/16"; allowed: an IPv4 block from /16 to /28 whose host bits '
            "are zero; write cidr: 10.1.0.0/16",
            id="host-bits",
        ),
        pytest.param(
            "network:\n  cidr: 10.1.0.0/16\n  availability_zone: us-west-2a\n",
            "network: [10.1.0.0/16]\n",
            "demo.yaml:4: network: got a list; allowed: a mapping with cidr, availability_zone, "
            "availability_zone_id, additional_availability_zones, control_plane_availability_zone, "
            "control_plane_availability_zone_id, egress, flow_logs, existing; write a mapping network with its "
            "settings",
            id="list-for-a-section",
        ),
        pytest.param(
            "storage:\n",
            "lifecycle: {users: trainer}\nstorage:\n",
            'demo.yaml:17: lifecycle.users: got "trainer"; allowed: a list of users; '
            "write users as a list: one line for each, beginning with '- '",
            id="text-for-a-list",
        ),
        pytest.param(
            "storage:\n",
            "lifecycle: {users: [{name: root, uid: 0}]}\nstorage:\n",
            "demo.yaml:17: lifecycle.users.0.uid: got 0; allowed: a whole number from 1001 to 59999; "
            "write uid: 1001 or more",
            id="uid-of-root",
        ),
        pytest.param(
            "region: us-west-2\n",
            "region: us-west-2\nregion: us-west-2\n",
            "demo.yaml:4: region: got the setting a second time, after line 3; allowed: each setting once, named by "
            "text; remove one of the two",
            id="setting-twice",
        ),
        pytest.param(
            "region: us-west-2\n",
            "region: us-west-2\n1: x\n",
            "demo.yaml:4: 1: got an unknown setting; allowed: name, cloud, account, region, "
            "encryption, permissions_boundary, termination_protection, network, cluster, slurm, eks, "
            "storage, lifecycle, sessions, images, observability, health, goodput, allow_replacement, suppress, "
            "stand_ins; remove 1",
            id="number-as-a-setting",
        ),
        pytest.param(
            "region: us-west-2\n",
            "region: us-west-2\n[a]: x\n",
            "demo.yaml:4: (key): got a name that is no text; allowed: each setting once, named by text; "
            "write the name as plain text",
            id="list-as-a-setting",
        ),
        pytest.param(
            "  availability_zone: us-west-2a",
            "  availability_zone: us-west-2a\n  egress: &e nat\nslurm:\n  config_strategy: *e",
            "demo.yaml:9: slurm.config_strategy: got an alias (*name); allowed: plain values; write the value out",
            id="alias",
        ),
    ],
)
def test_rejects_a_wrong_value_and_says_what_to_write(old: str, new: str, expected: str, write: Write) -> None:
    assert VALID.count(old) == 1

    assert "\n".join(problems_of(write(VALID.replace(old, new)))) == expected


def test_all_problems_are_told_at_once_in_the_order_of_the_file(write: Write) -> None:
    text = VALID.replace("us-west-2a", "zone a").replace("instance_count: 1", "instance_count: two")
    text = text.replace("capacity_gib: 1200", "capacity_gib: 0")

    lines = [problem.split(": ")[1] for problem in problems_of(write(text))]

    assert lines == [
        "network.availability_zone",
        "cluster.instance_groups.0.instance_count",
        "storage.lustre.capacity_gib",
    ]


def test_a_malformed_group_counts_as_a_group(write: Write) -> None:
    text = VALID.replace("instance_count: ", "instance_count: number ")

    lines = [problem.split(": ")[1] for problem in problems_of(write(text))]

    assert lines == ["cluster.instance_groups.0.instance_count", "cluster.instance_groups.1.instance_count"]


def test_a_problem_carries_its_parts_for_programs(write: Write) -> None:
    with pytest.raises(EnvironmentFileError) as caught:
        load(write(VALID.replace("instance_count: 4", "instance_count: four")))

    (problem,) = caught.value.problems
    assert (problem.line, problem.path) == (15, "cluster.instance_groups.1.instance_count")
    assert (problem.given, problem.fix) == ('"four"', "write instance_count: 4")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "demo.yaml:1: got an empty file; allowed: an environment; copy environments/local.yaml and change it"),
        (b"# only a comment\n", "demo.yaml:1: got an empty file; allowed: an environment; "
         "copy environments/local.yaml and change it"),
        (b"- a\n- b\n", "demo.yaml:1: got no mapping; allowed: settings as name: value; begin with name: local"),
        (b"name: demo\nregion: [a\n", "demo.yaml:3: got while parsing a flow sequence expected ',' or ']', but got "
         "'<stream end>'; allowed: YAML; correct the syntax in or above this line"),
        (b"name: a\n\tregion: b\n", "demo.yaml:2: got while scanning for the next token found character '\\t' that "
         "cannot start any token; allowed: YAML; correct the syntax in or above this line"),
        (b"name: a\n---\nname: b\n", "demo.yaml:2: got expected a single document in the stream but found another "
         "document; allowed: YAML; correct the syntax in or above this line"),
        (b"name: demo\nregion: \xff\n", "demo.yaml:2: got bytes that are no UTF-8; allowed: UTF-8 text; "
         "save the file as UTF-8"),
        (b"name: a\x00b\n", "demo.yaml:1: got the character 0x00; allowed: YAML of printable characters; remove it"),
        (b"name: !!python/object:os.system x\n", "demo.yaml:1: got could not determine a constructor for the tag "
         "'tag:yaml.org,2002:python/object:os.system'; allowed: YAML; correct the syntax in or above this line"),
        (b"a: " + b"[" * 5000, "demo.yaml:1: got values nested too deeply; allowed: an environment; "
         "remove the nesting"),
    ],
    ids=["empty", "comment", "list", "flow", "tab", "documents", "encoding", "control", "tag", "depth"],
)  # fmt: skip
def test_rejects_what_is_no_environment_file(content: bytes, expected: str, write: Write) -> None:
    path = write("")
    path.write_bytes(content)

    assert problems_of(path) == [expected]


def test_rejects_a_file_that_is_absent_or_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert problems_of(tmp_path / "none.yaml") == [
        "none.yaml: got no such file or directory; allowed: a readable YAML file; check the path"
    ]
    assert problems_of(tmp_path) == [".: got is a directory; allowed: a readable YAML file; check the path"]


def test_a_byte_order_mark_does_no_harm(write: Write) -> None:
    path = write("")
    path.write_bytes(b"\xef\xbb\xbf" + VALID.encode())

    assert load(path).name == "demo"
