"""Variables of a program that a process which takes over a rank has as at its start."""

import logging
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from holdfast_runtime.inprocess.member import Variables, missed


def test_only_what_all_ranks_that_have_changed_it_agree_on_is_named() -> None:
    own = {"noise": "0.0", "seen": "0", "done": "True"}
    changed = [{"noise": "0.5", "seen": "7", "done": "True", "late": "1"}, {"noise": "0.5", "seen": "9"}, {}]

    assert missed(own, changed) == ["noise is 0.0, and 0.5 on the other ranks"]


def test_a_process_that_has_run_a_step_names_what_has_changed_since() -> None:
    noise, rank, _count = 0.0, 1, 3
    variables = Variables()
    variables.begin()
    noise, _count, rate = 0.5, 4, 0.1

    assert variables.changed() == {"noise": "0.5"}
    assert (noise, rank, rate) == (0.5, 1, 0.1)


@pytest.mark.parametrize(
    ("made", "change", "text"),
    [
        pytest.param(nn.Linear, lambda each: each.weight.data.mul_(0.9), "Linear ", id="an average of weights"),
        pytest.param(nn.BatchNorm1d, lambda each: each(torch.ones(2, 2)), "BatchNorm1d ", id="a module with buffers"),
        pytest.param(
            lambda *_: torch.optim.Adam([torch.ones(1, requires_grad=True)]),
            lambda each: each.state.update({0: {"step": torch.tensor(7.0)}}),
            "Adam with 1 states of step 7",
            id="an optimizer",
        ),
        pytest.param(
            lambda *_: torch.amp.GradScaler("cpu"),
            lambda each: each.load_state_dict({**each.state_dict(), "scale": 8.0}),
            "GradScaler with scale 8",
            id="a scaler",
        ),
        pytest.param(
            lambda *_: np.random.default_rng(1),
            lambda each: each.random(),
            "Generator with state ",
            id="a generator of NumPy",
        ),
        pytest.param(
            lambda *_: torch.Generator(),
            lambda each: each.manual_seed(2),
            "Generator with state ",
            id="a generator of torch",
        ),
    ],
)
@pytest.mark.parametrize("kept", ["no", "yes", "in another"])
def test_what_the_loop_steps_is_named_unless_each_process_has_its_state(
    made: Any, change: Any, text: str, kept: str
) -> None:
    it = made(2, 2) if made is nn.Linear else made(2)
    kinds: dict[str, list[object]] = {"no": [], "yes": [it], "in another": [SimpleNamespace(average=it)]}
    objects = kinds[kept]
    variables = Variables(lambda: objects)
    variables.begin()

    change(it)

    found = variables.changed()
    assert [name for name in found if name == "it"] == (["it"] if kept == "no" else [])
    assert found.get("it", text).startswith(text)


def test_a_module_of_kept_parameters_is_not_named() -> None:
    model = nn.Linear(2, 2)
    wrapper, variables = nn.Sequential(model), Variables(lambda: [model])
    variables.begin()

    model.weight.data.zero_()

    assert variables.changed() == {}
    assert wrapper[0] is model


def test_a_process_logs_them_before_its_first_step(caplog: pytest.LogCaptureFixture) -> None:
    noise, variables = 0.0, Variables()
    variables.of_others = [{"noise": "0.5"}, {}]

    with caplog.at_level(logging.WARNING):
        variables.begin()
        variables.begin()

    assert noise == 0.0
    [message] = caplog.messages
    assert "noise is 0.0, and 0.5 on the other ranks" in message
    assert "give what decides about training to Run(state=...)" in message


def test_a_process_that_has_begun_a_step_does_not_log_what_others_change(caplog: pytest.LogCaptureFixture) -> None:
    noise, variables = 0.0, Variables()
    variables.begin()
    variables.of_others = [{"noise": "0.5"}]

    with caplog.at_level(logging.WARNING):
        variables.begin()

    assert (noise, caplog.messages) == (0.0, [])
