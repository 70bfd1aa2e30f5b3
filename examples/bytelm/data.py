"""Memory-mapped tokens, and batches of them."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from settings import RefusedError


@dataclass(frozen=True, kw_only=True)
class Corpus:
    tokens: Tensor
    sha256: str

    @staticmethod
    def open(folder: Path) -> "Corpus":
        """Map the tokens; refuses a file that differs from meta.json, such as half an import."""
        path = folder / "tokens.bin"
        try:
            meta = json.loads((folder / "meta.json").read_text())
            count, expected = int(meta["tokens"]), str(meta["sha256"])
            data = bytearray(path.read_bytes())  # not mapped: what is cut off a mapped file later reads as zeros
            found = hashlib.sha256(data).hexdigest()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RefusedError(
                f"no prepared data in {folder} ({error}); run prepare.py and wait for the import"
            ) from error
        if found != expected or len(data) != count:
            raise RefusedError(
                f"{path} has SHA-256 {found[:12]}, meta.json has {expected[:12]}; run prepare.py again"
                " or wait until the import is complete"
            )
        return Corpus(tokens=torch.frombuffer(data, dtype=torch.uint8), sha256=found)

    def batch(self, *, seed: int, step: int, rank: int, size: int, context: int) -> tuple[Tensor, Tensor]:
        """Inputs and targets of one rank's step; a pure function of the arguments."""
        digest = hashlib.blake2b(f"{seed}/{step}/{rank}".encode(), digest_size=8).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest, "big") >> 1)
        starts = torch.randint(len(self.tokens) - context, (size, 1), generator=generator)
        windows = self.tokens[starts + torch.arange(context + 1)].long()
        return windows[:, :-1], windows[:, 1:]
