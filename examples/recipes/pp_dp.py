"""
Llama as a pipeline of --pp stages (1F1B), each sharded over its ranks (FSDP2).

    holdfast-run --nproc-per-node 4 --spares 1 pp_dp.py --data text.tokens --pp 2

Run gets the schedule and reopens its groups after a loss. A lost rank comes back from a snapshot, or with --replicas 2
from its twin at the current step.
"""

import torch
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

import holdfast_runtime as holdfast
from llama import SIZES, Llama, loss_of, materialize
from recipe import Report, data_mesh, dataset, mesh_of, parser, precision


def main() -> None:
    flags = parser(__doc__, sizes=SIZES)
    flags.add_argument("--pp", type=int, default=2, help="stages. Default: 2")
    flags.add_argument("--microbatches", type=int, default=2, help="of a batch. Default: 2")
    args = flags.parse_args()
    holdfast.init_process_group()
    device = holdfast.device()
    mesh = mesh_of(args, device, pp=args.pp)

    number = mesh["pp"].get_local_rank()
    size = SIZES[args.size]
    with torch.device("meta"):
        model = Llama(size, stage=(number, args.pp))
    for module in (*model.layers.values(), model):
        fully_shard(module, mesh=data_mesh(mesh), mp_policy=precision(device))
    materialize(model, device=device, seed=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.rate, betas=(0.9, 0.95), weight_decay=0.1)

    # Shapes are given, so that a spare can do a step alone: stages ask their neighbours for them else.
    rows, kind = args.batch_size // args.microbatches, precision(device).param_dtype or torch.float32
    hidden = torch.empty(rows, size.context, size.width, dtype=kind, device="meta", requires_grad=True)
    first, last = number == 0, number == args.pp - 1
    stage = PipelineStage(
        model,
        number,
        args.pp,
        device,
        input_args=torch.empty(rows, size.context, dtype=torch.int64, device="meta") if first else hidden,
        output_args=hidden.new_empty(rows, size.context, size.vocabulary, requires_grad=True) if last else hidden,
        group=mesh["pp"].get_group(),
    )
    schedule = Schedule1F1B(stage, n_microbatches=args.microbatches, loss_fn=loss_of)
    del stage
    data = dataset(args, size.context, mesh)
    run = holdfast.Run(
        model,
        optimizer,
        state={"data": data},
        pipeline=schedule,
        snapshot_every=args.snapshot_every,
        survive=args.survive,
    )
    report = Report(run, args)
    for step in run.steps(args.steps):
        with step:
            inputs, targets = (part.to(device) for part in data.batch(step.number, run.data_rank).torch())
            losses: list[torch.Tensor] = []
            schedule.step(
                *([inputs] if first else []), target=targets if last else None, losses=losses if last else None
            )
            # The mean is over all ranks, and only the last stage knows the loss.
            step.update(args.pp * torch.stack(losses).mean() if losses else 0.0)
            report.step(step)


if __name__ == "__main__":
    main()
