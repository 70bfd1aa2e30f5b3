"""
torch's own FSDP2 example through ``holdfast_runtime``: seven changed lines.

    git clone https://github.com/pytorch/examples && git -C examples checkout 77f55b912142e11fcfdf5b530231fb9c52f181e8
    python port_fsdp2.py examples      # rewrites examples/distributed/FSDP2/example.py

As with minGPT (``port.py``), lines are addressed by number, and nothing of the example (BSD licence) is repeated here.
"""

import sys
from pathlib import Path

from port import Edits, changed_lines, ported

SHA256 = "f84fb0503517ee5c6a6100c69bd0ccc55431e141643a32de88fadfb3407ecc6c"
INDENT = " " * 4
EDITS: Edits = (
    (4, 3, ("import holdfast_runtime as holdfast",)),
    # It ends where there are no two GPUs; the rest of it trains on CPUs as well.
    (37, 40, ()),
    (51, 52, (INDENT + "holdfast.init_process_group()",)),
    (97, 97, (INDENT + "run = holdfast.Run(model, optim)", INDENT + "def iteration(step):")),
    (104, 105, (INDENT * 2 + "step.update(loss)",)),
    (107, 106, (INDENT + "for step in run.steps(10):", INDENT * 2 + "with step: iteration(step)")),
    (108, 108, ()),
)


def main() -> int:
    path = Path(sys.argv[1]) / "distributed" / "FSDP2" / "example.py"
    try:
        path.write_text(ported(path.read_text(), sha256=SHA256, edits=EDITS))
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{path}: {changed_lines(EDITS)} lines rewritten")
    return 0


if __name__ == "__main__":
    sys.exit(main())
