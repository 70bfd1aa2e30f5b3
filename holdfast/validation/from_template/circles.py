"""
Circular dependencies.

Source: CloudFormation user guide, "Troubleshooting CloudFormation": "Circular dependency between resources"; template
reference, Ref, Fn::GetAtt, Fn::Sub, DependsOn.
"""

from collections.abc import Iterator, Mapping, Sequence

from holdfast.validation.cloudformation import Fault, Template, line_of, named

CIRCLE = "HF023"


def circles(template: Template) -> Iterator[Fault]:
    resources = template.section("Resources")
    waits = {name: list(_waited_for(body, resources)) for name, body in resources.items()}
    done: set[str] = set()
    for start in waits:
        circle = [] if start in done else _circle(start, waits, done)
        if circle:
            path = f"Resources.{circle[0]}"
            yield Fault(
                code=CIRCLE,
                line=line_of(template.body, path) or 1,
                path=path,
                given=f"the circle {' -> '.join(circle)}",
                allowed="resources that can be made one after the other",
                fix="put what closes the circle into a resource of its own",
            )


def _waited_for(body: object, resources: Mapping[str, object]) -> Iterator[str]:
    if not isinstance(body, Mapping):
        return
    depends = body.get("DependsOn")
    names = [*(depends if isinstance(depends, list) else [depends]), *named(body.get("Properties"))]
    yield from dict.fromkeys(name for name in names if isinstance(name, str) and name in resources)


def _circle(start: str, waits: Mapping[str, Sequence[str]], done: set[str]) -> list[str]:
    """Circle reachable from a resource; empty without one. ``done`` collects visited ones."""
    way = [start]
    steps = [iter(waits[start])]
    while steps:
        following = next(steps[-1], None)
        if following is None:
            done.add(way.pop())
            steps.pop()
        elif following in way:
            done.update(way)
            return [*way[way.index(following) :], following]
        elif following not in done:
            way.append(following)
            steps.append(iter(waits[following]))
    return []
