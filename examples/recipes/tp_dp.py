"""
Llama with layers divided among --tp ranks (tensor parallel), sharded over the others (FSDP2).

    holdfast-run --nproc-per-node 4 --spares 1 tp_dp.py --data text.tokens --tp 2

Ranks that divide a layer see the same samples (run.data_rank). A lost rank comes back from a snapshot, or with
--replicas 2 from its twin at the current step.
"""

import torch
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn.utils import clip_grad_norm_

import holdfast_runtime as holdfast
from llama import SIZES, Llama, loss_of, materialize
from recipe import Report, data_mesh, dataset, mesh_of, parser, precision


def main() -> None:
    flags = parser(__doc__, sizes=SIZES)
    flags.add_argument("--tp", type=int, default=2, help="ranks that divide a layer. Default: 2")
    args = flags.parse_args()
    holdfast.init_process_group()
    device = holdfast.device()
    mesh = mesh_of(args, device, tp=args.tp)

    size = SIZES[args.size]
    with torch.device("meta"):
        model = Llama(size)
    rows, all_of_it = Shard(1), Replicate()
    gather = PrepareModuleInput(input_layouts=(rows,), desired_input_layouts=(all_of_it,))
    plan = {
        "embed": RowwiseParallel(input_layouts=all_of_it, output_layouts=rows),
        "layers.*.attention_norm": SequenceParallel(),
        "layers.*.attention": gather,
        "layers.*.attention.w[qkv]": ColwiseParallel(),
        "layers.*.attention.wo": RowwiseParallel(output_layouts=rows),
        "layers.*.norm": SequenceParallel(),
        "layers.*.feed_forward": gather,
        "layers.*.feed_forward.gate": ColwiseParallel(),
        "layers.*.feed_forward.up": ColwiseParallel(),
        "layers.*.feed_forward.down": RowwiseParallel(output_layouts=rows),
        "norm": SequenceParallel(),
        "head": ColwiseParallel(input_layouts=rows, output_layouts=all_of_it),
    }
    parallelize_module(model, mesh["tp"], plan)
    for module in (*model.layers.values(), model):
        fully_shard(module, mesh=data_mesh(mesh), mp_policy=precision(device))
    materialize(model, device=device, seed=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.rate, betas=(0.9, 0.95), weight_decay=0.1)

    data = dataset(args, size.context, mesh)
    run = holdfast.Run(model, optimizer, state={"data": data}, snapshot_every=args.snapshot_every, survive=args.survive)
    report = Report(run, args)
    for step in run.steps(args.steps):
        with step:
            inputs, targets = (part.to(device) for part in data.batch(step.number, run.data_rank).torch())
            loss = loss_of(model(inputs), targets)
            loss.backward()
            clip_grad_norm_(model.parameters(), 1.0)
            step.update(loss)
            report.step(step)


if __name__ == "__main__":
    main()
