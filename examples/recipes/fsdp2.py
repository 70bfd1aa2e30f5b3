"""
Llama, fully sharded with FSDP2: each rank has 1/W of the parameters, gradients and moments.

    holdfast-run --nproc-per-node 4 --spares 1 fsdp2.py --data text.tokens

The state of a lost rank comes from its snapshot on another node; all ranks repeat a few updates (--snapshot-every), to
the same bits, without new processes.
"""

import torch
from torch.distributed.fsdp import fully_shard
from torch.nn.utils import clip_grad_norm_

import holdfast_runtime as holdfast
from llama import SIZES, Llama, loss_of, materialize
from recipe import Report, data_mesh, dataset, mesh_of, parser, precision


def main() -> None:
    args = parser(__doc__, sizes=SIZES).parse_args()
    holdfast.init_process_group()
    device = holdfast.device()
    mesh = mesh_of(args, device)

    size = SIZES[args.size]
    with torch.device("meta"):
        model = Llama(size)
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
