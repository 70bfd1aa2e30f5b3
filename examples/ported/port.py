"""
minGPT's training loop through ``holdfast_runtime``: nine changed lines.

    git clone https://github.com/karpathy/minGPT && git -C minGPT checkout 37baab71b9abea1b76ab957409a1cc2fbfba8a26
    python port.py minGPT      # rewrites minGPT/mingpt/trainer.py

The lines are addressed by number in the file as it is published (MIT licence), whose SHA-256 is checked first, so
nothing of it is repeated here.
"""

import hashlib
import sys
from pathlib import Path

SHA256 = "7e28e58add6f998e7f2ccf3684a4a22a071ababd484a0f59030349dad4d36878"
INDENT = " " * 8
Edits = tuple[tuple[int, int, tuple[str, ...]], ...]
"""First and last line that go (none when the last is before the first), and what comes there."""
EDITS: Edits = (
    (11, 10, ("import holdfast_runtime as holdfast",)),
    # The group of ranks takes the place of the iterator over the data.
    (80, 80, (INDENT + "run = self.resilient = holdfast.Run(model, self.optimizer)",)),
    # The body of the endless loop becomes a function, so that none of its lines moves.
    (81, 81, (INDENT + "def iteration(step):",)),
    # A batch is drawn with random numbers that are a function of seed, step and rank: nothing is left to resume.
    (
        84,
        88,
        (
            INDENT + "    chosen = torch.randint(len(self.train_dataset), (config.batch_size,))",
            INDENT + "    batch = torch.utils.data.default_collate([self.train_dataset[i] for i in chosen])",
        ),
    ),
    # Whole gradients of all ranks, before they are clipped.
    (98, 97, (INDENT + "    step.reduce(self.loss)",)),
    (99, 99, (INDENT + "    step.update()",)),
    (
        107,
        109,
        (
            INDENT + "for step in run.steps(config.max_iters):",
            INDENT + "    with step: iteration(step)",
        ),
    ),
)


def changed_lines(edits: Edits = EDITS) -> int:
    return sum(len(new) for _, _, new in edits)


def ported(source: str, *, sha256: str = SHA256, edits: Edits = EDITS) -> str:
    """The ported file; raises ValueError for another source, whose line numbers would not match."""
    found = hashlib.sha256(source.encode()).hexdigest()
    if found != sha256:
        raise ValueError(f"the file has SHA-256 {found[:12]}, and the port is of {sha256[:12]}; check out that commit")
    lines = source.splitlines()
    for first, last, new in sorted(edits, reverse=True):
        lines[first - 1 : last] = new
    return "\n".join(lines) + "\n"


def main() -> int:
    path = Path(sys.argv[1]) / "mingpt" / "trainer.py"
    try:
        path.write_text(ported(path.read_text()))
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{path}: {changed_lines()} lines rewritten")
    return 0


if __name__ == "__main__":
    sys.exit(main())
