"""The environments are living examples: the full ones leave no setting out."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
import yaml
from pydantic import BaseModel

from holdfast.config import Environment, LifecycleMode, load, mode_of
from holdfast.config.reading import bare

ELSEWHERE = {
    "slurm.config_strategy",  # not sent with Continuous provisioning, which accounting needs: slurm-p5.yaml
    "slurm.accounting.endpoint",  # a database of one's own instead of one that is made
    "slurm.accounting.port",
    "slurm.accounting.database",
    "slurm.accounting.secret_arn",
    "eks.chart_archives",  # a closed network; the archives are no part of this repository
    "cluster.instance_groups.life_cycle_config.on_init_complete",  # one script for a group: on_create there
    "lifecycle.existing.on_create",  # and on_init_complete here
    "cluster.restricted_instance_groups",  # not together with Continuous provisioning
    "cluster.restricted_environment",
    "network.control_plane_availability_zone_id",  # by names of zones in full.yaml
    "stand_ins.gpu",  # local.yaml: the embedded AWS only
    "stand_ins.efa",
    "stand_ins.lustre",
    "stand_ins.image",
    "suppress",  # nothing in them has to be suppressed
}
"""Settings that exclude others which the full environments have."""


def settings(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[str]:
    """Every leaf setting, lists of sections without their numbers."""
    for name, field in model.model_fields.items():
        annotation = bare(field.annotation)
        if get_origin(annotation) is tuple:
            annotation = bare(get_args(annotation)[0])
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from settings(annotation, (*path, name))
        else:
            yield ".".join((*path, name))


def written(value: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Every setting that stands in a file, and every section around it."""
    yield ".".join(path)
    for item in value if isinstance(value, list) else ():
        yield from written(item, path)
    for name, item in value.items() if isinstance(value, dict) else ():
        yield from written(item, (*path, name))


def test_the_full_environments_leave_no_setting_out(repository: Path) -> None:
    found = set()
    for name in ("full", "full-slurm", "existing-slurm", "existing-eks"):
        found |= set(written(yaml.safe_load((repository / "environments" / f"{name}.yaml").read_text())))

    missing = [
        setting
        for setting in settings(Environment)
        if setting not in found and not any(setting == other or setting.startswith(f"{other}.") for other in ELSEWHERE)
    ]

    assert missing == []


@pytest.mark.parametrize("setting", sorted(ELSEWHERE))
def test_no_setting_is_excused_that_is_not_there(setting: str) -> None:
    assert any(known == setting or known.startswith(f"{setting}.") for known in settings(Environment))


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[3] / "environments").glob("*.yaml")), ids=lambda p: p.stem
)
def test_every_environment_is_named_like_its_file(path: Path) -> None:
    assert load(path).name == path.stem


@pytest.mark.parametrize(
    ("orchestrator", "provisioning", "shared", "own", "expected"),
    [
        ("slurm", None, None, None, "extension"),
        ("slurm", "Continuous", None, None, "custom"),
        ("eks", None, None, None, "custom"),
        ("eks", "Continuous", None, None, "custom"),
        ("slurm", None, "none", None, "none"),
        ("slurm", None, "none", "custom", "custom"),
        ("slurm", "Continuous", "extension", None, "extension"),
    ],
)
def test_a_group_has_its_own_mode_or_that_of_all_or_what_hyperpod_takes(
    orchestrator: str,
    provisioning: str | None,
    shared: LifecycleMode | None,
    own: LifecycleMode | None,
    expected: LifecycleMode,
) -> None:
    found = mode_of(
        group=own, environment=shared, on_eks=orchestrator == "eks", continuous=provisioning == "Continuous"
    )

    assert found == expected
