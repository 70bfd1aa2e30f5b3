"""The sizes that an elastic job may have, in nodes, of ``--nnodes MIN:MAX`` and ``--sizes``."""

import re


class SizesError(ValueError):
    """Sizes that cannot be right, all that is wrong with them."""


def read_nodes(text: str | None) -> tuple[int, int] | None:
    """
    Fewest and most nodes of ``--nnodes``, equal for N; None without a value.

    Raises:
        SizesError: it is neither N nor MIN:MAX.
    """
    if text is None:
        return None
    if not re.fullmatch(r"\d+(:\d+)?", text):
        raise SizesError(f"--nnodes is {text!r}; allowed: N, or MIN:MAX for a job whose size may change")
    least, _, most = text.partition(":")
    found = int(least), int(most or least)
    if not 1 <= found[0] <= found[1]:
        raise SizesError(f"--nnodes is {text}; allowed: MIN:MAX with MIN of 1 or more and not above MAX")
    return found


def read_sizes(text: str | None, *, given: tuple[int, int] | None, nodes: int, spare_nodes: int = 0) -> tuple[int, ...]:
    """
    The sizes in nodes, ascending; none for a job that keeps its size.

    Raises:
        SizesError: all that is wrong, a line each.
    """
    elastic = given is not None and given[0] < given[1]
    most = nodes - spare_nodes
    if text is None:
        return _all(given[0], most) if elastic and given is not None else ()
    if not re.fullmatch(r"\d+(,\d+)*", text):
        raise SizesError(f"--sizes is {text!r}; allowed: numbers of nodes with commas between them, such as 2,3,4")
    sizes = sorted({int(each) for each in text.split(",")})
    least = given[0] if elastic and given is not None else 1
    problems = [
        f"--sizes names {size}; allowed: {least} to {most} nodes"
        + (f", from --nnodes, less --spare-nodes {spare_nodes}" if spare_nodes else ", from --nnodes")
        for size in sizes
        if not least <= size <= most
    ]
    if not problems and sizes == [most]:
        problems = [f"--sizes names {most} only, which is the size of all nodes; name smaller ones, or leave it out"]
    if problems:
        raise SizesError("\n".join(problems))
    return tuple(sizes)


def _all(least: int, most: int) -> tuple[int, ...]:
    if least > most:
        raise SizesError(f"--nnodes asks for {least} nodes or more, and {most} are left without --spare-nodes")
    return tuple(range(least, most + 1))
