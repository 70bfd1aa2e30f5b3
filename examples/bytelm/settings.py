"""Flags of a run, and the place of this process in the job. No torch: bad input is refused at once."""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


class RefusedError(Exception):
    """The run must not continue, and a retry would not help. Exit code 2."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    data: Path
    checkpoints: Path
    steps: int
    batch_size: int
    learning_rate: float
    seed: int
    checkpoint_every: int
    keep: int
    timeout_s: float
    allow_older_checkpoint: bool


@dataclass(frozen=True, kw_only=True)
class Place:
    rank: int
    world_size: int
    address: str
    port: int
    node: str
    restart: int


def parse_settings(arguments: Sequence[str] | None = None) -> Settings:
    """Read the command line; exits with code 2 on a mistake."""
    parser = argparse.ArgumentParser(description="Train a byte-level transformer, one rank per process.")
    parser.add_argument("--data", type=Path, default=Path("/fsx/data/bytelm"), help="folder of prepare.py's files")
    parser.add_argument("--checkpoints", type=Path, required=True, help="folder that every rank sees")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=8, help="sequences per rank and step. Default: 8")
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoint-every", type=int, default=20, metavar="STEPS")
    parser.add_argument("--keep", type=int, default=3, help="checkpoints to keep. Default: 3")
    parser.add_argument("--timeout-s", type=float, default=60.0, help="longest wait for the other ranks. Default: 60")
    parser.add_argument(
        "--allow-older-checkpoint",
        action="store_true",
        help="resume from an older checkpoint when the newest is damaged. Default: refuse",
    )
    parsed = parser.parse_args(arguments)
    for name in ("steps", "batch_size", "learning_rate", "checkpoint_every", "keep", "timeout_s"):
        if getattr(parsed, name) <= 0:
            parser.error(f"--{name.replace('_', '-')} must be more than 0, got {getattr(parsed, name)}")
    return Settings(**vars(parsed))


def find_place(environment: Mapping[str, str] = os.environ) -> Place:
    """Rank, size and address, by torchrun's variables or Slurm's; a single process without either."""
    values = {
        name: environment.get(name) or environment.get(slurm_name) or default
        for name, slurm_name, default in (
            ("RANK", "SLURM_PROCID", "0"),
            ("WORLD_SIZE", "SLURM_NTASKS", "1"),
            ("MASTER_PORT", "MASTER_PORT", "29500"),
            ("RESTART", "SLURM_RESTART_COUNT", "0"),
        )
    }
    try:
        numbers = {name: int(text) for name, text in values.items()}
    except ValueError as error:
        raise RefusedError(f"RANK, WORLD_SIZE and MASTER_PORT must be whole numbers: {error}") from error
    if not 0 <= numbers["RANK"] < numbers["WORLD_SIZE"]:
        raise RefusedError(f"rank must be from 0 to {numbers['WORLD_SIZE'] - 1}, got {numbers['RANK']}")
    return Place(
        rank=numbers["RANK"],
        world_size=numbers["WORLD_SIZE"],
        address=environment.get("MASTER_ADDR", "127.0.0.1"),
        port=numbers["MASTER_PORT"],
        node=environment.get("HOLDFAST_INSTANCE_ID") or os.uname().nodename,
        restart=numbers["RESTART"],
    )
