"""A job of more ranks than a process may have files open: gloo's connections are made at their first use."""

import multiprocessing
import os
import resource
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn

from holdfast_runtime.groups import Group, RecordedGroups, sockets_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
MEMBERS, FILES, STEPS, DEADLINE_S = 70, 64, 2, 600.0


def in_child(rank: int, port: int, pipe: Connection, act: Callable[[Group, int], object]) -> None:
    try:
        os.closerange(3, pipe.fileno())  # what the parent has for the others
        os.closerange(pipe.fileno() + 1, 4096)
        torch.set_num_threads(1)
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
        group = Group(backend="gloo", recorded=RecordedGroups())
        store = dist.TCPStore("127.0.0.1", port, is_master=False, timeout=timedelta(seconds=DEADLINE_S))
        group.open(store=store, rank=rank, world_size=MEMBERS, deadline_s=DEADLINE_S)
        pipe.send(act(group, rank))
    except BaseException:  # noqa: BLE001 - reported to the test
        pipe.send(traceback.format_exc())
    pipe.recv()  # all have done it
    os._exit(0)


def trained(group: Group, rank: int) -> object:
    """Parameters, and whether the connections that came after the group was made are broken with the others."""
    torch.manual_seed(1)
    before = sockets_of()
    model = nn.Linear(4, 1, bias=False)
    for step in range(STEPS):
        inputs = torch.randn(2, 4, generator=torch.Generator().manual_seed(1000 * step + rank))
        model.zero_grad()
        model(inputs).square().mean().backward()
        dist.all_reduce(model.weight.grad)
        with torch.no_grad():
            model.weight -= 0.1 * model.weight.grad / MEMBERS
    later = sockets_of().keys() - before.keys()
    opening = group._opening
    assert opening is not None
    return model.weight.tolist(), bool(later), later <= opening.sockets().keys()


def all_members(act: Callable[[Group, int], object]) -> list[Any]:
    """Forked: 70 imports of torch would take minutes."""
    context = multiprocessing.get_context("fork")
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    pipes, processes = [], []
    for rank in range(MEMBERS):
        ours, theirs = context.Pipe()
        process = context.Process(target=in_child, args=(rank, store.port, theirs, act), daemon=True)
        process.start()
        theirs.close()
        pipes.append(ours)
        processes.append(process)
    try:
        found = [pipe.recv() if pipe.poll(DEADLINE_S) else "no answer" for pipe in pipes]
        for pipe in pipes:
            pipe.send(None)
        return found
    finally:
        for process in processes:
            process.kill()
            process.join()


def test_seventy_ranks_train_with_64_files_each_and_know_the_connections_that_are_made_late() -> None:
    found = all_members(trained)

    assert all(isinstance(each, tuple) for each in found), next(each for each in found if isinstance(each, str))
    assert all(each == found[0] for each in found)
    assert found[0][1:] == (True, True)
