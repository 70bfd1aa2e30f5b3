"""The environment of a process: what torchrun sets, for any script, and what the runtime needs."""

import os
import zlib
from collections.abc import Mapping

from holdfast_runtime.launcher.settings.options import Options

PORTS = range(20_000, 30_000)


def variables(
    options: Options,
    *,
    rank: int,
    slot: int,
    generation: int,
    restarts: int,
    master: tuple[str, int],
    world_size: int = 0,
    base: Mapping[str, str] = os.environ,
) -> dict[str, str]:
    """
    The environment of one process.

    Args:
        rank: -1 for a spare.
        master: Where ranks of a script that makes its own groups meet; another port in each generation, so that
            nothing of an earlier attempt can answer.
        world_size: Ranks of that view. Default: as many as the job may have
    """
    world_size = world_size or options.world_size
    own = {
        "RANK": str(rank),
        "WORLD_SIZE": str(world_size),
        "LOCAL_RANK": str(slot),
        "LOCAL_WORLD_SIZE": str(options.processes),
        "GROUP_RANK": str(options.node_rank),
        "GROUP_WORLD_SIZE": str(options.nodes),
        "ROLE_RANK": str(rank),
        "ROLE_WORLD_SIZE": str(world_size),
        "MASTER_ADDR": master[0],
        "MASTER_PORT": str(master[1]),
        "TORCHELASTIC_RUN_ID": options.run_id,
        "TORCHELASTIC_RESTART_COUNT": str(restarts),
        "TORCHELASTIC_MAX_RESTARTS": str(options.max_restarts),
        "HOLDFAST_TOKEN": options.token,
        "HOLDFAST_GENERATION": str(generation),
        "HOLDFAST_NODE": str(options.node_rank),
        "HOLDFAST_SLOT": str(slot),
        "HOLDFAST_RACK": find_rack(base),
        "HOLDFAST_ROLE": "rank" if rank >= 0 else "spare",
        "HOLDFAST_DEADLINES": options.deadlines.to_json(),
        "HOLDFAST_SIZES": ",".join(map(str, options.world_sizes)),
    }
    threads = {} if "OMP_NUM_THREADS" in base or options.processes == 1 else {"OMP_NUM_THREADS": "1"}
    return {**base, **threads, **own}


def find_rack(environment: Mapping[str, str]) -> str:
    """
    Failure domain of this node: HOLDFAST_RACK, or its leaf switch in Slurm's topology plugin.

    Slurm says "root.leaf-3.node-7" in SLURM_TOPOLOGY_ADDR and "switch.switch.node" in SLURM_TOPOLOGY_ADDR_PATTERN
    (srun(1)); without a plugin only "node-7" and "node".

    Returns:
        Its name; empty where nothing says one.
    """
    if rack := environment.get("HOLDFAST_RACK", ""):
        return rack
    kinds = environment.get("SLURM_TOPOLOGY_ADDR_PATTERN", "").split(".")
    names = environment.get("SLURM_TOPOLOGY_ADDR", "").split(".")
    above = kinds.index("node") if "node" in kinds else 0
    return names[above - 1] if 0 < above < len(names) else ""


def master_port(run_id: str, generation: int) -> int:
    return PORTS[(zlib.crc32(run_id.encode()) + 7 * generation) % len(PORTS)]
