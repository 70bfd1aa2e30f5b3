"""
Llama with FSDP2 on a changing number of nodes, with the same bits for each size.

    holdfast-run --nnodes 2:4 --peers ... --node-rank 0 elastic_fsdp2.py --data text.tokens --logical 32
    holdfast-run scale 3

The batch has --logical parts for any number of ranks: each rank does its share of them, one after another, and
gradients are added in their order. The state of a lost node comes from snapshots on other nodes.
"""

import torch
from torch.distributed.fsdp import fully_shard

import holdfast_runtime as holdfast
from holdfast_runtime.data import Dataset, Source
from llama import SIZES, Llama, loss_of, materialize
from recipe import Report, data_mesh, mesh_of, parser, precision


def main() -> None:
    flags = parser(__doc__, sizes=SIZES)
    flags.add_argument(
        "--logical", type=int, default=4, help="parts of the batch, as many as ranks or more. Default: 4"
    )
    args = flags.parse_args()
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

    data = Dataset(
        sources=[Source("text", args.data)],
        context=size.context,
        batch_size=args.batch_size,
        world_size=args.logical,
        seed=1,
    )
    run = holdfast.Run(
        model,
        optimizer,
        state={"data": data},
        elastic=args.logical,
        snapshot_every=args.snapshot_every,
        survive=args.survive,
    )
    report = Report(run, args)
    for step in run.steps(args.steps):
        with step:
            for part in step.parts():
                inputs, targets = (each.to(device) for each in data.batch(step.number, part).torch())
                step.backward(loss_of(model(inputs), targets))
            step.clip(1.0)
            step.update()
            report.step(step)


if __name__ == "__main__":
    main()
