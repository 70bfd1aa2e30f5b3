"""Checks that a program can change its size, before the first step; all problems at once."""

from collections.abc import Mapping, Sequence

from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from holdfast_runtime.elastic.parts import check_cut
from holdfast_runtime.groups import RecordedGroups, UnsupportedError

THROUGHPUT = "throughput"
VARIABLE = "HOLDFAST_SIZES"


def sizes_of(environment: Mapping[str, str]) -> tuple[int, ...]:
    return tuple(int(size) for size in environment.get(VARIABLE, "").split(",") if size)


def elastic_asked(elastic: int | str | None, *, sizes: Sequence[int]) -> int:
    """
    Logical ranks, of what ``Run(elastic=...)`` says; 0 for throughput mode, and for a job that keeps its size.

    Raises:
        UnsupportedError: it is neither, it is missing in an elastic job, or has fewer logical ranks than ranks.
    """
    if elastic is None:
        if sizes:
            raise UnsupportedError(
                f"the job may have {_listed(sizes)} ranks, and Run does not say what stays the same then; give "
                f'elastic=N for the same bits with N logical ranks, or elastic="{THROUGHPUT}" for a batch that grows '
                "with the job"
            )
        return 0
    if elastic == THROUGHPUT:
        return 0
    if not isinstance(elastic, int) or isinstance(elastic, bool) or elastic < 1:
        raise UnsupportedError(f'elastic is {elastic!r}; allowed: a number of logical ranks, or "{THROUGHPUT}"')
    if sizes and elastic < max(sizes):
        raise UnsupportedError(
            f"elastic is {elastic} logical ranks, and the job may have {max(sizes)} ranks; allowed: {max(sizes)} or "
            "more, so that each rank has one"
        )
    return elastic


def check(model: nn.Module, recorded: RecordedGroups, *, logical: int, pipelines: bool) -> None:
    problems = []
    if pipelines:
        problems.append("a pipeline keeps its size; leave out --sizes and --nnodes MIN:MAX")
    else:
        try:
            check_cut(model)
        except UnsupportedError as error:
            problems.append(str(error))
    if named := recorded.of_some_ranks():
        problems.append(f"the script made {named[0]}, which is not of all ranks of another size; leave it out")
    statistics = [name for name, module in model.named_modules() if _has_statistics(module)]
    if logical and statistics:
        problems.append(
            f"{statistics[0]} has running statistics, which differ from rank to rank and so with their number; use "
            f'another normalization, or elastic="{THROUGHPUT}"'
        )
    if problems:
        raise UnsupportedError("\n".join(problems))


def _has_statistics(module: nn.Module) -> bool:
    return isinstance(module, _NormBase) and module.track_running_stats


def _listed(sizes: Sequence[int]) -> str:
    return " or ".join(map(str, sizes))
