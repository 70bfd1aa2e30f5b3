"""Where a launcher looks for the witness."""

from pathlib import Path

import pytest

from holdfast_runtime.witness import PORT, WitnessError, find_witness

SLURM = {"SLURM_JOB_ID": "7"}


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("ClusterName=c\nSlurmctldHost=ip-10-1-0-10(10.1.0.10)\n", "10.1.0.10"),
        ("SlurmctldHost=one # the first\nSlurmctldHost=two\n", "one"),
        ("slurmctldhost = head\n", "head"),
        ("#SlurmctldHost=old\nControlMachine=head\nControlAddr=10.1.0.9\n", "10.1.0.9"),
        ("ClusterName=c\n", None),
    ],
)
def test_under_slurm_it_is_beside_the_controller_that_slurm_conf_names(
    tmp_path: Path, text: str, host: str | None
) -> None:
    file = tmp_path / "opt/slurm/etc/slurm.conf"
    file.parent.mkdir(parents=True)
    file.write_text(text)

    found = find_witness(None, nodes=2, environment=SLURM, root=tmp_path)

    assert found == (None if host is None else (host, PORT))


def test_what_the_job_says_of_slurm_conf_comes_first(tmp_path: Path) -> None:
    for name, host in (("mine.conf", "mine"), ("etc/slurm/slurm.conf", "other")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"SlurmctldHost={host}\n")

    found = find_witness(None, nodes=2, environment={**SLURM, "SLURM_CONF": "/mine.conf"}, root=tmp_path)

    assert found == ("mine", PORT)


@pytest.mark.parametrize(("nodes", "environment"), [(3, SLURM), (64, SLURM), (2, {})])
def test_where_one_vote_more_does_not_help_or_nothing_names_one_there_is_none(
    tmp_path: Path, nodes: int, environment: dict[str, str]
) -> None:
    (tmp_path / "etc/slurm").mkdir(parents=True)
    (tmp_path / "etc/slurm/slurm.conf").write_text("SlurmctldHost=head\n")

    assert find_witness(None, nodes=nodes, environment=environment, root=tmp_path) is None


def test_a_flag_wins_and_may_say_that_there_is_none() -> None:
    assert find_witness("head:99", nodes=2, environment=SLURM) == ("head", 99)
    assert find_witness("[fd00::1]:99", nodes=2, environment={}) == ("fd00::1", 99)
    assert find_witness("none", nodes=2, environment=SLURM) is None


@pytest.mark.parametrize("given", ["head", "head:", ":5", "head:0", "head:65536", ""])
def test_a_flag_that_is_no_address_says_what_is_allowed(given: str) -> None:
    with pytest.raises(WitnessError, match=r"--witness is .*; allowed: HOST:PORT, or none"):
        find_witness(given, nodes=2, environment={})
