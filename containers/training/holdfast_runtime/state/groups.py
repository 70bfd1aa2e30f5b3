"""Parameter groups of an optimizer, with parameters by name."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torch import nn
from torch.optim import Optimizer

from holdfast_runtime.state.values import copied, put_back

Noted = list[tuple[dict[str, Any], list[nn.Parameter]]]
"""Settings and parameters of each group."""


def note_groups(optimizer: Optimizer) -> Noted:
    return [
        ({key: copied(value) for key, value in group.items() if key != "params"}, [*group["params"]])
        for group in optimizer.param_groups
    ]


def restore_groups(optimizer: Optimizer, noted: Noted) -> None:
    own = optimizer.param_groups
    del own[len(noted) :]
    for number, (settings, members) in enumerate(noted):
        if number == len(own):
            own.append({"params": [*members]})
        group = own[number]
        for key in group.keys() - settings.keys() - {"params"}:
            del group[key]
        for key, value in settings.items():
            group[key] = put_back(group.get(key), value)
        if [*map(id, group["params"])] != [*map(id, members)]:
            group["params"] = [*members]
    kept = {parameter for group in own for parameter in group["params"]}
    for parameter in [parameter for parameter in optimizer.state if parameter not in kept]:
        del optimizer.state[parameter]


def groups_of(parameters: Iterable[tuple[str, nn.Parameter]], optimizer: Optimizer) -> list[dict[str, Any]]:
    """Return the settings of all groups; ``params`` are names. Raises ValueError for a parameter that has none."""
    names = {parameter: name for name, parameter in parameters}
    found = []
    for number, group in enumerate(optimizer.param_groups):
        strangers = [tuple(parameter.shape) for parameter in group["params"] if parameter not in names]
        if strangers:
            raise ValueError(
                f"optimizer.param_groups[{number}] has a parameter of shape {strangers[0]} that is not a parameter of "
                "the model given to Run; make it one, or give it an optimizer of its own"
            )
        settings = {key: copied(value) for key, value in group.items() if key != "params"}
        found.append({**settings, "params": [names[parameter] for parameter in group["params"]]})
    return found


def put_groups(model: nn.Module, optimizer: Optimizer, groups: Sequence[Mapping[str, Any]]) -> None:
    parameters = dict(model.named_parameters())
    restore_groups(
        optimizer,
        [
            ({key: value for key, value in group.items() if key != "params"}, [parameters[n] for n in group["params"]])
            for group in groups
        ],
    )
