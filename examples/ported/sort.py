"""
minGPT's own demonstration, a GPT that sorts digits, with the ported trainer and nothing else of ours.

    holdfast-run --nproc-per-node 4 --spares 1 sort.py FOLDER STEPS

with minGPT on PYTHONPATH. FOLDER gets a line per step and rank, with the digest of the parameters.
"""

import json
import os
import sys
import zlib
from pathlib import Path

import torch
from mingpt.model import GPT
from mingpt.trainer import Trainer
from torch.utils.data import Dataset

LENGTH, DIGITS = 6, 3


class Sorting(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Digits and the same digits sorted; the loss is of the second half."""

    def __len__(self) -> int:
        return 10_000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        digits = torch.randint(DIGITS, (LENGTH,), generator=torch.Generator().manual_seed(int(index)))
        row = torch.cat([digits, digits.sort().values])
        targets = row[1:].clone()
        targets[: LENGTH - 1] = -1
        return row[:-1], targets


def main() -> None:
    folder, steps = Path(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    torch.manual_seed(3407)
    shape = GPT.get_default_config()
    shape.model_type, shape.vocab_size, shape.block_size = "gpt-nano", DIGITS, 2 * LENGTH - 1
    settings = Trainer.get_default_config()
    settings.max_iters, settings.batch_size, settings.num_workers, settings.device = steps, 8, 0, "cpu"
    trainer = Trainer(settings, GPT(shape), Sorting())

    def note(trainer: Trainer) -> None:
        """One line: step, loss, and a digest of all parameters."""
        total = 0
        for parameter in trainer.model.parameters():
            total = zlib.crc32(parameter.detach().numpy().tobytes(), total)
        line = {"step": trainer.resilient.step - 1, "loss": float(trainer.loss).hex(), "digest": total}
        with (folder / f"rank{os.environ['RANK']}.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")

    trainer.add_callback("on_batch_end", note)
    trainer.run()


if __name__ == "__main__":
    main()
