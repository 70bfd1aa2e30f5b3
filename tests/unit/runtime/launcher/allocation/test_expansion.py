"""A node in place of a lost one: what Slurm is asked for, as 22.05 answered, and when nothing is."""

import asyncio
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from holdfast_runtime.launcher.allocation import (
    WITHOUT,
    Expansion,
    Request,
    launcher,
    like,
    pause_after,
    read_job,
    without_slurm,
)
from holdfast_runtime.launcher.ranks import LocalSlots
from holdfast_runtime.membership import View

SHOWN = (
    "JobId=7 JobName=a Account=(null) QOS=normal Partition=dev NodeList=ip-[11-12,14-15] BatchHost=ip-11 NumNodes=4 "
    "NumCPUs=8 NumTasks=5 TRES=cpu=8,node=4,billing=8{gres} OverSubscribe={shared} StdOut=/fsx/a-7.out"
)
WITH_GPUS = SHOWN.format(gres=",gres/gpu=32", shared="NO")
WITHOUT_GPUS = SHOWN.format(gres="", shared="OK")
REQUEST = Request(
    job="7",
    is_asked=True,
    nodes=5,
    run_id="7",
    port=29407,
    arguments=("--spare-nodes", "1"),
    program=("train.py", "-x"),
)


def test_a_job_is_read_as_slurm_shows_it() -> None:
    job = read_job(WITH_GPUS)
    assert (job.nodes, job.cpus_per_node, job.holds_gres, job.is_exclusive) == (4, 2, True, True)
    assert (job.partition, job.account, job.output) == ("dev", "", "/fsx/a-7.out")
    with pytest.raises(ValueError, match="allowed: a job of Slurm"):
        read_job("slurm_load_jobs error: Invalid job id specified")


def test_the_node_is_as_those_of_the_job() -> None:
    assert like(read_job(WITHOUT_GPUS), name="n") == [
        *("--nodes=1", "--ntasks=1", "--job-name=n", "--partition=dev", "--qos=normal"),
        *("--exclude=ip-[11-12,14-15]", "--cpus-per-task=2"),
    ]
    assert like(read_job(WITH_GPUS), name="n")[-1] == "--exclusive"


def test_its_launcher_has_the_options_of_the_others_and_the_place_of_the_lost_one() -> None:
    command = launcher(REQUEST, node=2, address=("ip-11", 29407))
    assert command[0] == sys.executable
    assert command[3:] == [
        *("--spare-nodes", "1", "--nnodes", "5", "--node-rank", "2", "--rdzv-endpoint", "ip-11:29407"),
        *("--rdzv-id", "7", "--port", "29407", "train.py", "-x"),
    ]


def test_nothing_of_the_step_of_the_leader_gets_into_another() -> None:
    assert without_slurm({"SLURM_NNODES": "5", "SLURM_CONF": "/c", "PATH": "/bin"}) == {
        "SLURM_CONF": "/c",
        "PATH": "/bin",
    }


class Leader:
    """A leader that has lost node 2, with programs in place of Slurm's."""

    def __init__(
        self,
        folder: Path,
        *,
        shown: str,
        is_asked: bool = True,
        leads: bool = True,
        up: tuple[int, ...] = (),
        state: str = "ALLOCATED",
    ) -> None:
        self.folder, self.said = folder, list[str]()
        whole = shown.replace("NumNodes=4", "NumNodes=5").replace("11-12", "11-13")
        for name, body in {
            "scontrol": f"case \"$*\" in *'show node'*) echo 'NodeName=ip-13 State={state} Reason=x' ;; "
            "*hostnames*) echo ip-11 ip-12 ip-13 ip-14 ip-15 ;; *NodeList*) ;; "
            f"*'show job'*) if [ -e {folder}/whole ]; then echo '{whole}'; else echo '{shown}'; fi ;; esac\n"
            f'case "$*" in *NodeList*) rm {folder}/whole ;; esac',
            "squeue": "case $* in *-n*) ;; *%T*) [ -e it ] || echo RUNNING ip-13; touch it ;; *) echo ip-13 ;; esac",
            "salloc": "echo salloc: Granted job allocation 9",
            "sbatch": "cat > script; echo 9",
            "srun": "true",
            "scancel": "true",
        }.items():
            (folder / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {folder}/asked\n{body}\n')
            (folder / name).chmod(0o755)
        (folder / "asked").touch()
        slots = LocalSlots(node=0, ranks=1, spares=0)
        slots.view = View(generation=3, nodes=(0, 0, -1, 0, 0))
        self.slots, links = slots, SimpleNamespace(up=up, port=1)
        self.made = Expansion(
            Request(
                job="7",
                is_asked=is_asked,
                nodes=5,
                hosts=("ip-11", "ip-12", "ip-13", "ip-14", "ip-15"),
                run_id="7",
                program=("t.py",),
            ),
            token="secret",
            leads=lambda: leads,
            slots=slots,
            links=links,  # type: ignore[arg-type]
            host="ip-11",
            tell=self.said.append,
        )

    async def run(self) -> list[str]:
        self.made.installed()
        ends = ("joins", "until the job ends", "no replacement")
        quiet, size = 0, 0
        while quiet < 75 and not any(end in text for end in ends for text in self.said):
            await asyncio.sleep(0.02)
            before, size = size, (self.folder / "asked").stat().st_size
            quiet = quiet + 1 if size == before else 0
        await self.made.close()
        return [line for line in (self.folder / "asked").read_text().splitlines() if not line.startswith("squeue")]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_slurm_merges_a_node_into_a_job_without_gres(programs: Path) -> None:
    async def main() -> None:
        leader = Leader(programs, shown=WITHOUT_GPUS)
        asked = await leader.run()
        assert asked[2].startswith("salloc --no-shell --dependency=expand:7 --nodes=1")
        assert asked[3] == "scontrol update JobId=9 NumNodes=0"
        assert asked[4].startswith("srun --jobid=7 --nodelist=ip-13 --no-kill")
        assert "secret" not in "".join(asked), "all users see command lines"
        assert "node 2: replaced by ip-13, joins as the spare" in leader.said

    asyncio.run(main())


def test_launchers_that_end_before_they_join_are_started_again_with_growing_pauses_and_two_lines(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def paused(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    async def main() -> None:
        leader = Leader(programs, shown=WITHOUT_GPUS)
        monkeypatch.setattr(import_module("holdfast_runtime.launcher.allocation.expansion").asyncio, "sleep", paused)
        leader.made.installed()
        while (programs / "asked").read_text().count("salloc") < 7:
            await sleep(0.02)
        await leader.made.close()
        assert leader.said == [
            "node 2: lost, requested another one as the spare (job expansion)",
            "node 2: replaced by ip-13, joins as the spare",
            "node 2: its launcher ended before it joined; trying again, with growing pauses",
        ]
        assert [each for each in pauses if each > 3.0][:5] == [6.0, 12.0, 24.0, 48.0, 60.0]

    asyncio.run(main())


def test_a_pause_has_a_limit_however_many_launchers_have_ended() -> None:
    assert [pause_after(failed) for failed in (0, 1, 5, 100_000)] == [3.0, 6.0, 60.0, 60.0]


def test_a_job_that_holds_gres_gets_the_node_beside_it_and_is_not_merged(programs: Path) -> None:
    async def main() -> None:
        asked = await Leader(programs, shown=WITH_GPUS).run()
        assert [line.split()[0] for line in asked] == ["scontrol", "scontrol", "sbatch"]
        script = (programs / "script").read_text()
        assert "squeue -h -j 7 -t RUNNING" in script, "without the job it has nothing to join"
        assert "SLURM_JOB_ID=7" in script

    asyncio.run(main())


def test_a_job_that_has_not_asked_is_told_once_what_it_lacks(programs: Path) -> None:
    async def main() -> None:
        leader = Leader(programs, shown=WITH_GPUS, is_asked=False)
        without_2 = leader.slots.view
        leader.made.installed()
        assert leader.said == [], "a node that no view has had starts late"
        leader.slots.view = View(generation=4, nodes=(0,) * 5)
        leader.made.installed()
        leader.slots.view = without_2
        assert await leader.run() == []
        leader.made.installed()
        assert leader.said == [WITHOUT]
        assert "no spare until the job ends" in WITHOUT

    asyncio.run(main())


def test_a_slurmctld_that_does_not_answer_is_reported_and_its_client_ended(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("holdfast_runtime.launcher.allocation.expansion"), "COMMAND_S", 0.2)

    async def main() -> None:
        leader = Leader(programs, shown=WITHOUT_GPUS)
        (programs / "scontrol").write_text(f"#!/bin/sh\necho $$ > {programs}/pid\nexec sleep 60\n")
        await leader.run()
        assert leader.said == ["node 2: no replacement: scontrol: no answer within 0.2 s"]
        assert not Path(f"/proc/{(programs / 'pid').read_text().strip()}").exists()

    asyncio.run(main())


def test_a_launcher_ends_while_slurm_merges_a_node_and_scancel_fails(programs: Path) -> None:
    async def main() -> None:
        leader = Leader(programs, shown=WITHOUT_GPUS)
        (programs / "scontrol").write_text(
            f'#!/bin/sh\ncase "$*" in *NumNodes=0*) touch {programs}/merging; exec sleep 60 ;; '
            f"*'show job'*) echo '{WITHOUT_GPUS}' ;; esac\n"
        )
        (programs / "scancel").write_text(f'#!/bin/sh\necho "scancel $*" >> {programs}/asked\nexit 1\n')
        leader.made.installed()
        while not (programs / "merging").exists():
            await asyncio.sleep(0.02)
        await asyncio.wait_for(leader.made.close(), 20)
        assert "scancel 9" in (programs / "asked").read_text(), "the node that Slurm granted is given back"
        assert not any("no replacement" in line for line in leader.said)

    asyncio.run(main())


def test_only_the_leader_asks(programs: Path) -> None:
    async def main() -> None:
        leader = Leader(programs, shown=WITH_GPUS, leads=False)
        assert (await leader.run(), leader.said) == ([], [])

    asyncio.run(main())


def test_nothing_is_asked_while_slurm_has_not_missed_the_node(programs: Path) -> None:
    async def main() -> None:
        leader = Leader(programs, shown=WITH_GPUS.replace("NumNodes=4", "NumNodes=5"))
        assert {line.split()[2] for line in await leader.run()} == {"show"}

    asyncio.run(main())


def test_a_failing_node_that_its_ranks_have_left_is_taken_out_and_replaced(programs: Path) -> None:
    async def main() -> None:
        (programs / "whole").touch()
        leader = Leader(programs, shown=WITHOUT_GPUS, state="ALLOCATED+FAIL")
        asked = await leader.run()
        assert "scontrol update JobId=7 NodeList=ip-11,ip-12,ip-14,ip-15" in asked
        assert "node 2: replaced by ip-13, joins as the spare" in leader.said

    asyncio.run(main())


@pytest.mark.parametrize(
    ("up", "state"), [((2,), "ALLOCATED+FAIL"), ((), "ALLOCATED")], ids=["its launcher gives its state", "healthy"]
)
def test_a_node_stays_in_the_allocation(up: tuple[int, ...], state: str, programs: Path) -> None:
    async def main() -> None:
        (programs / "whole").touch()
        leader = Leader(programs, shown=WITHOUT_GPUS, up=up, state=state)
        assert not [line for line in await leader.run() if "update" in line]

    asyncio.run(main())


def test_the_node_that_runs_the_job_file_stays_until_the_job_ends(programs: Path) -> None:
    async def main() -> None:
        (programs / "whole").touch()
        shown = WITHOUT_GPUS.replace("BatchHost=ip-11", "BatchHost=ip-13")
        leader = Leader(programs, shown=shown, state="ALLOCATED+FAIL")
        await leader.run()
        reason = "ip-13 runs the job file, so Slurm gives it up when the job ends"
        assert leader.said == [f"node 2: no replacement: {reason}"]

    asyncio.run(main())
