"""Accounting on the controller: MariaDB here in custom mode, or a database outside in either."""

import json
import os
from pathlib import Path

import pytest
from scratch_node import ScratchNode

from holdfast_lifecycle import LifecycleError
from holdfast_lifecycle.model import AccountingDatabase, accounting_database
from holdfast_lifecycle.node import slurm_settings
from holdfast_lifecycle.steps.slurm import accounting

ARN = "arn:aws:secretsmanager:us-gov-west-1:123456789012:secret:slurm-AbCdEf"
RDS = AccountingDatabase(endpoint="db.example.rds.amazonaws.com", port=3307, secret_arn=ARN)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScratchNode:
    made = ScratchNode(tmp_path, monkeypatch)
    made.program("sacctmgr", "#!/bin/sh\necho local\n")
    data = made.root / "var/lib/mysql"
    made.program("mariadb", f'#!/bin/sh\ncase "$*" in *execute*) ;; *) tee -a {tmp_path}/sql ;; esac | grep -q datadir'
                 f" && echo {data}/ || true\n")  # fmt: skip
    made.program("mariadb-install-db", f"#!/bin/sh\nmkdir -p {data}/mysql\n")
    return made


def sql(node: ScratchNode) -> str:
    return (node.root.parent / "sql").read_text()


def secret(node: ScratchNode, text: str) -> None:
    node.program("aws", f"#!/bin/sh\necho '{text}'\n")


def dbd(node: ScratchNode) -> dict[str, str]:
    return slurm_settings(node.context, "slurmdbd.conf")


def test_custom_mode_sets_up_mariadb_and_slurmdbd(node: ScratchNode) -> None:
    assert node.step("accounting").outcome == "done"

    assert node.running() == {"mariadb", "slurmdbd"}
    found = dbd(node)
    assert (found["storagehost"], found["storageuser"], found["slurmuser"]) == ("localhost", "slurm", "slurm")
    assert found["dbdhost"] == os.uname().nodename.split(".")[0]
    path = node.root / "opt/slurm/etc/slurmdbd.conf"
    assert path.stat().st_mode & 0o777 == 0o600
    assert f"ALTER USER 'slurm'@'localhost' IDENTIFIED BY '{found['storagepass']}'" in sql(node)
    assert found["storagepass"] not in "".join(node.calls()), "everybody sees arguments"
    assert slurm_settings(node.context)["accountingstoragetype"] == "accounting_storage/slurmdbd"
    assert slurm_settings(node.context)["accountingstoragehost"] == "10.1.0.4"
    assert any(call.startswith("mariadb-install-db") for call in node.calls())


def test_a_second_run_changes_nothing(node: ScratchNode) -> None:
    node.step("accounting")
    before = {path: path.read_bytes() for path in (node.root / "opt/slurm/etc").iterdir()}
    node.forget()
    assert node.step("accounting").outcome == "satisfied"
    assert {path: path.read_bytes() for path in (node.root / "opt/slurm/etc").iterdir()} == before
    assert [call for call in node.calls("systemctl") if "is-active" not in call] == []


def test_what_others_wrote_stays(node: ScratchNode) -> None:
    node.write("opt/slurm/etc/accounting.conf", "PriorityType=priority/multifactor\n")
    written = node.write("opt/slurm/etc/slurmdbd.conf", "StorageType=accounting_storage/mysql\nStorageLoc=own\n")
    node.step("accounting")
    assert written.read_text() == "StorageType=accounting_storage/mysql\nStorageLoc=own\n"
    assert node.read("opt/slurm/etc/accounting.conf").startswith("PriorityType=priority/multifactor\n")


def test_a_slurm_conf_without_the_include_gets_it(node: ScratchNode) -> None:
    conf = node.root / "opt/slurm/etc/slurm.conf"
    conf.write_text(conf.read_text().replace("include accounting.conf\n", "").rstrip("\n"))
    node.step("accounting")
    assert conf.read_text().endswith("Default=YES\ninclude accounting.conf\n")


def test_hyperpods_own_accounting_is_left_alone(node: ScratchNode) -> None:
    result = node.has(hook="OnInitComplete").step("accounting")
    assert (result.outcome, result.remark, node.calls("systemctl")) == ("satisfied", "HyperPod's own", [])


def test_extension_mode_starts_accounting_again_after_a_take_over(node: ScratchNode) -> None:
    node.write("opt/slurm/etc/accounting.conf", "AccountingStorageType=accounting_storage/slurmdbd\n")
    conf = "StorageType=accounting_storage/mysql\nStorageUser=slurm\nStoragePass=it\\'s new\n"
    node.write("opt/slurm/etc/slurmdbd.conf", conf.replace("\\'", "'"))
    (node.root / "elsewhere/mysql").mkdir(parents=True)
    (node.root / "var/lib/mysql").symlink_to(node.root / "elsewhere")
    assert node.has(hook="OnInitComplete").step("accounting").outcome == "done"
    assert "IDENTIFIED BY 'it\\'s new'" in sql(node)
    assert not any(call.startswith("mariadb-install-db") for call in node.calls()), "there is data"


def test_a_server_with_its_data_elsewhere_is_refused(node: ScratchNode) -> None:
    node.program("mariadb", "#!/bin/sh\ncat >/dev/null\necho /srv/other/\n")
    assert node.step("accounting").seen == "got /srv/other"


def test_a_server_that_does_not_answer_is_told(node: ScratchNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast_lifecycle.controller.database._READY_S", 0.05)
    node.program("mariadb", "#!/bin/sh\nexit 1\n")
    assert node.step("accounting").expected == "MariaDB answers within 0.05 s"


def test_a_slurmdbd_that_does_not_answer_is_told(node: ScratchNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounting, "_ANSWER_S", 0.05)
    node.program("sacctmgr", "#!/bin/sh\nexit 1\n")
    assert "slurmdbd does not answer" in node.step("accounting").seen


@pytest.mark.parametrize("line", ["StorageUser=a';DROP", "StorageLoc=x`y"])
def test_names_that_are_no_plain_names_reach_no_statement(node: ScratchNode, line: str) -> None:
    node.write("opt/slurm/etc/slurmdbd.conf", f"StorageType=x\nStorageUser=slurm\nStoragePass=p\n{line}\n")
    assert node.step("accounting").expected == "StorageUser and StorageLoc of slurmdbd.conf are plain names"


@pytest.mark.parametrize("hook", ["OnCreate", "OnInitComplete"])
def test_a_database_outside_is_used_where_there_is_one(node: ScratchNode, hook: str) -> None:
    secret(node, json.dumps({"username": "admin", "password": "pw-1"}))
    node.runs("mariadb", "slurmdbd", "slurmctld")
    clustername = node.write("var/spool/slurmctld/clustername", "local|17")

    assert node.has(hook=hook, accounting=RDS).step("accounting").outcome == "done"

    found = dbd(node)
    assert (found["storagehost"], found["storageport"], found["storagepass"]) == (RDS.endpoint, "3307", "pw-1")
    assert node.running() == {"slurmdbd"}, "slurmctld begins anew in the step that follows"
    assert "--region us-gov-west-1" in node.calls("aws")[0]
    assert not clustername.exists()
    node.forget()
    assert (node.step("accounting").outcome, node.calls("aws")) == ("satisfied", [])


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("no json", "JSONDecodeError when reading it"),
        ('{"username": "admin"}', "KeyError when reading it"),
        ('{"username": "admin", "password": "a#b"}', "it has"),
    ],
)
def test_a_secret_that_is_of_no_use_is_told_without_its_content(node: ScratchNode, text: str, seen: str) -> None:
    secret(node, text)
    result = node.has(accounting=RDS).step("accounting")
    assert result.seen == seen
    assert "a#b" not in str(result)


def test_an_arn_of_something_else_is_refused(node: ScratchNode) -> None:
    other = AccountingDatabase(endpoint="db", port=3306, secret_arn="arn:aws:rds:us-west-2:123456789012:db:x")
    assert node.has(accounting=other).step("accounting").seen == "'arn:aws:rds:us-west-2:123456789012:db:x'"


def test_accounting_json_is_read_with_mysqls_port_as_default(tmp_path: Path) -> None:
    assert accounting_database(tmp_path) is None
    (tmp_path / "accounting.json").write_text(json.dumps({"endpoint": "db", "secret_arn": ARN}))
    assert accounting_database(tmp_path) == AccountingDatabase(endpoint="db", port=3306, secret_arn=ARN)


@pytest.mark.parametrize("text", ["[]", "{}", '{"endpoint": "db", "secret_arn": "a", "port": "x"}', "{"])
def test_an_accounting_json_that_is_none_ends_the_lifecycle(tmp_path: Path, text: str) -> None:
    (tmp_path / "accounting.json").write_text(text)
    with pytest.raises(LifecycleError, match=r"accounting\.json.*deploy the lifecycle bundle again"):
        accounting_database(tmp_path)


def test_slurmdbd_is_told_to_use_tls_where_the_server_takes_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "accounting.json").write_text(json.dumps({"endpoint": "db", "secret_arn": ARN, "tls": True}))

    found = accounting_database(tmp_path)

    assert found == AccountingDatabase(endpoint="db", port=3306, secret_arn=ARN, tls=True)


@pytest.mark.parametrize(("tls", "parameters"), [(True, "SSL_CA=/etc/ssl/certs/ca-certificates.crt"), (False, None)])
def test_its_configuration_asks_for_tls_only_then(node: ScratchNode, *, tls: bool, parameters: str | None) -> None:
    secret(node, json.dumps({"username": "admin", "password": "pw-1"}))

    node.has(accounting=RDS._replace(tls=tls)).step("accounting")

    assert dbd(node).get("storageparameters") == parameters
