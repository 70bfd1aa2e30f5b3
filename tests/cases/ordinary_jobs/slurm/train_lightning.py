"""DDP from the variables of Slurm, as Lightning's SLURMEnvironment takes them."""

import os
import runpy
import subprocess

nodes = subprocess.check_output(["scontrol", "show", "hostnames", os.environ["SLURM_NODELIST"]], text=True).split()
os.environ |= {
    "MASTER_ADDR": nodes[0],
    "MASTER_PORT": str(15000 + int(os.environ["SLURM_JOB_ID"]) % 10000),
    "RANK": os.environ["SLURM_PROCID"],
    "LOCAL_RANK": os.environ["SLURM_LOCALID"],
    "WORLD_SIZE": os.environ["SLURM_NTASKS"],
}
runpy.run_path("ddp.py", run_name="__main__")
