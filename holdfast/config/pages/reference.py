import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from holdfast.config.models import Environment, meanings
from holdfast.config.reading import allowed_at, inner_model, load
from holdfast.config.refusals import EnvironmentFileError

_INTRO = """\
# The environment file

One YAML file describes one environment: a HyperPod cluster with its network, storage and scripts, as one stack.
`environments/local.yaml` is a rehearsal on this machine, `environments/slurm-p5.yaml` a cluster on AWS.
Both are tested, and good to copy.

    holdfast up local                           # environments/local.yaml
    holdfast up path/to/file.yaml               # any other file
    npx cdk deploy -c environment=local --all   # the CDK app takes the same names and paths

The last one needs credentials of an account, or of the embedded AWS: [the local cloud](../concepts/local-cloud.md).

Reading is strict.
A setting that is not on this page is an error, and so is a value of the wrong type: `"4"` and `4.0` are no count.
The file is one YAML document of plain values: no aliases, no merge keys, no key twice.
All problems are reported at once, each with its line.

This first line gives completion and checks in editors that know JSON Schema, such as VS Code with its YAML extension:

    # yaml-language-server: $schema=environment.schema.json

`python -m holdfast.config > environment.schema.json` writes that file.

Names of settings are AWS's own in snake_case; units are in the name (`capacity_gib`).
A setting with the default *required* has no default.
`[]` after a name stands for each item of a list.
"""

_RULES = """\
## Rules across settings

Values that are well-formed each can be impossible together. `holdfast check` finds that before anything is deployed;
[findings](findings/index.md) lists every rule with its source and an example.
"""

_ERRORS = """\
## What an error looks like

This file

```yaml
{example}```

is refused with exit code 2 and one line per problem: place, setting, what was given, what is allowed, what to do.

```text
{refusal}
```
"""

_EXAMPLE = """\
name: demo
account: 123456789012
region: us-west-2
network:
  cidr: 10.1.0.0/16
  availability_zone: us-east-1a
cluster:
  instance_groups:
    - name: workers
      instance_type: p5.48xlarge
      instance_count: four
      slurm: {node_type: Compute, partition: dev}
storage:
  lustre: {capacity_gib: 1300, throughput_mbps_per_tib: 250, mountpath: /fsx}
"""


def reference_text() -> str:
    sections = [_section(place, model) for place, model in _models((), Environment)]
    errors = _ERRORS.format(example=_EXAMPLE, refusal=_refusal())
    return "\n".join([_INTRO, *sections, _RULES, errors])


def _models(place: tuple[str | int, ...], model: type[BaseModel]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    yield place, model
    for name, field in model.model_fields.items():
        inner, many = inner_model(field)
        if inner is not None:
            yield from _models((*place, name, *([0] if many else [])), inner)


def _section(place: tuple[str | int, ...], model: type[BaseModel]) -> str:
    title = f"`{_path(place)}`" if place else "The file as a whole"
    rows = "".join(_row(place, name, field, meanings(model)[name]) for name, field in model.model_fields.items())
    return (
        f"## {title}\n\n{_one_line(model.__doc__)}\n\n"
        f"| setting | allowed | default | meaning |\n|---|---|---|---|\n{rows}"
    )


def _row(place: tuple[str | int, ...], name: str, field: FieldInfo, docstring: str) -> str:
    inner, many = inner_model(field)
    allowed = allowed_at((*place, name)).text
    if inner is not None:
        path = _path((*place, name, *([0] if many else [])))
        link = f"[`{path}`](#{re.sub(r'[^a-z0-9_-]', '', path)})"
        allowed = f"{allowed if many else 'a mapping'}, see {link}"
    meaning, _, default = _one_line(docstring).partition(" Default: ")
    cells = (f"`{name}`", allowed, "*required*" if field.is_required() else default, meaning)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _path(place: tuple[str | int, ...]) -> str:
    return ".".join(str(part) for part in place).replace(".0", "[]")


def _refusal() -> str:
    with TemporaryDirectory() as folder:
        path = Path(folder, "demo.yaml")
        path.write_text(_EXAMPLE)
        try:
            load(path)
        except EnvironmentFileError as error:
            return str(error).replace(str(path.resolve()), path.name)
    raise AssertionError("the example of a refused file is accepted")


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())
