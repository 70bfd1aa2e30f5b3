"""Parameter groups of an optimizer, with parameters by name."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn
from torch.optim import Optimizer

from holdfast_runtime.state.values import copied, put_back


def groups_of(model: nn.Module, optimizer: Optimizer) -> list[dict[str, Any]]:
    """Return the settings of all groups; ``params`` are names. Raises ValueError for a parameter of another module."""
    names = {parameter: name for name, parameter in model.named_parameters()}
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
    """Give an optimizer the groups of ``groups_of``: existing ones are changed in place."""
    parameters = dict(model.named_parameters())
    own = optimizer.param_groups
    del own[len(groups) :]
    for number, settings in enumerate(groups):
        group = own[number] if number < len(own) else {}
        for key in group.keys() - settings.keys():
            del group[key]
        for key, value in settings.items():
            if key != "params":
                group[key] = put_back(group.get(key), value)
        members = [parameters[name] for name in settings["params"]]
        if [*map(id, group.get("params", ()))] != [*map(id, members)]:
            group["params"] = members
        if number == len(own):
            own.append(group)
    kept = {parameter for group in own for parameter in group["params"]}
    for parameter in [parameter for parameter in optimizer.state if parameter not in kept]:
        del optimizer.state[parameter]
