import sys
from typing import Annotated

import typer

from holdfast.cli.definitions import complete_environment
from holdfast.cli.deployed import CLUSTER, PROFILE, REGION, Context, locate
from holdfast.cli.terminal import CommandError, console
from holdfast.cli.upgrading import Request, end_of, gather, plan_lines, plan_of, problems_of, upgrade_groups


def upgrade(
    environment: Annotated[
        str | None,
        typer.Argument(
            metavar="[ENV]",
            help="Deployed environment, name in environments/, or path. Default: the current one.",
            show_default=False,
            autocompletion=complete_environment,
        ),
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Instance group; repeatable. Default: all but Slurm's controller."),
    ] = None,
    release: Annotated[str, typer.Option(metavar="X.Y.Z", help="Release of HyperPod's AMI. Default: the latest.")] = "",
    image: Annotated[str, typer.Option(metavar="AMI", help="AMI of your own, or default.")] = "",
    batch: Annotated[
        int, typer.Option(metavar="N", help="Nodes at a time, with EKS. Default: 1.", min=0, show_default=False)
    ] = 0,
    wait: Annotated[
        int | None,
        typer.Option(
            metavar="S", help="Time between two batches, with EKS. Default: 300 for jobs with spares.", min=0, max=3600
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan only.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    cluster: Annotated[str | None, CLUSTER] = None,
    region: Annotated[str | None, REGION] = None,
    profile: Annotated[str | None, PROFILE] = None,
) -> None:
    """
    Upgrade the AMI of a cluster's nodes, group by group.

    Running jobs hand their ranks over first, under Slurm; with EKS spares take over from each batch. The plan shows
    what is lost.
    """
    context = locate(environment=environment, cluster=cluster, region=region, profile=profile)
    request = Request(groups=tuple(group or ()), release=release, image_id=image, batch=batch, wait_s=wait)
    situation = gather(context)
    if problems := problems_of(situation, request):
        raise CommandError("\n".join(problems))
    plans = plan_of(situation, request)
    for line in plan_lines(plans, request):
        console.print(line)
    chosen = [plan for plan in plans if not plan.skipped]
    if dry_run or not chosen:
        return
    if not yes:
        _confirm(lost=any(plan.lost for plan in chosen))
    ends = upgrade_groups(context, chosen, request)
    words, ok = end_of(ends, again=_again(context, request))
    if not ok:
        raise CommandError(words, exit_code=1)
    console.print(words)


def _again(context: Context, request: Request) -> str:
    session = context.session
    target = session.environment or f"--cluster {session.cluster_name} --region {session.region}"
    wait = "" if request.wait_s is None else str(request.wait_s)
    options = {"--release": request.release, "--image": request.image_id}
    options |= {"--batch": str(request.batch or ""), "--wait": wait}
    return " ".join(["holdfast upgrade", target, *(f"{name} {value}" for name, value in options.items() if value)])


def _confirm(*, lost: bool) -> None:
    if not sys.stdin.isatty():
        raise CommandError("got no terminal to confirm the plan; add --yes, or --dry-run to see the plan only")
    if not typer.confirm("something is lost, see above; upgrade" if lost else "upgrade"):
        raise CommandError("not confirmed: nothing was changed", exit_code=1)
