"""Physical names, checked for duplicates at synthesis."""

from aws_cdk import Stack, Stage, Token
from constructs import IConstruct

_CLAIM = "holdfast:name"


def claim(scope: IConstruct, kind: str, name: str, *, given: str) -> None:
    """
    Reserve a physical name for a construct; raises ValueError if another construct of the app has it.

    For stacks without account or region a name is unique within its stage.
    """
    root, stack = scope.node.root, Stack.of(scope)
    place = name
    if Token.is_unresolved(name):
        stage = Stage.of(scope)
        place = f"{stage.node.path if stage is not None else ''}|{name}"
    for entry in root.node.metadata:
        if entry.type == _CLAIM and entry.data["place"] == place:
            raise ValueError(
                f"{kind} {scope.node.path}: got {given}, which {entry.data['path']} has in {stack.region}; allowed: a "
                "name of its own; leave it out, and it follows from the construct's place in the app"
            )
    root.node.add_metadata(_CLAIM, {"place": place, "path": scope.node.path})
