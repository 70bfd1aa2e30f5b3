"""How many nodes a machine can hold, by its memory and by its cores."""

import datetime
from dataclasses import replace

import pytest

from holdfast.catalog import LocalNodes, local_nodes
from holdfast.cli.deploying import Capacity, node_count
from holdfast.config import load
from holdfast.environments import environment_file

GIB = 1 << 30
FIGURES = LocalNodes(base_mib=1024, node_mib=64, nodes_per_core=24, source="", date="")
TWO_CORES = Capacity(figures=FIGURES, memory_bytes=8 * GIB, cores=2)


def test_each_figure_has_a_source_and_a_date() -> None:
    for figures in local_nodes().values():
        assert "measured" in figures.source
        assert datetime.date.fromisoformat(figures.date) <= datetime.datetime.now(datetime.UTC).date()


def test_48_nodes_fit_on_two_cores_by_the_figures_of_slurm() -> None:
    machine = replace(TWO_CORES, figures=local_nodes()["slurm"])
    assert machine.lacking(48) == machine.crowded(48) == []
    assert str(machine) == "room for 48 nodes"


def test_the_scarcer_of_both_decides() -> None:
    assert str(TWO_CORES) == "room for 48 nodes"
    assert str(replace(TWO_CORES, cores=64)) == "room for 112 nodes"


@pytest.mark.parametrize(("nodes", "refused"), [(1, False), (112, False), (113, True)])
def test_what_there_is_no_memory_for_is_refused(nodes: int, refused: bool) -> None:
    assert bool(TWO_CORES.lacking(nodes)) == refused


def test_a_machine_without_memory_for_the_local_cloud_itself_holds_nothing() -> None:
    small = replace(TWO_CORES, memory_bytes=GIB // 2)
    (said,) = small.lacking(1)
    assert said.startswith("a cluster of 1 nodes needs 1.1 GiB of memory, 0.5 GiB are available, for 0 nodes; ")


def test_more_nodes_than_the_cores_bring_up_are_told_in_one_sentence() -> None:
    assert TWO_CORES.crowded(48) == []
    (said,) = TWO_CORES.crowded(64)
    assert said.startswith("64 nodes on 2 cores: 48 come up within the time that their scripts have, ")
    assert "\n" not in said


def test_nodes_that_run_by_now_ask_for_nothing_more() -> None:
    full = replace(TWO_CORES, memory_bytes=GIB // 4, running=48)
    assert full.lacking(48) == []
    assert full.by_memory == 52
    (said,) = full.lacking(60)
    assert said.startswith("a cluster of 60 nodes needs 0.8 GiB of memory, 0.2 GiB are available, for 52 nodes; ")


def test_spares_are_nodes_too() -> None:
    assert node_count(load(environment_file("local"))) == 6
