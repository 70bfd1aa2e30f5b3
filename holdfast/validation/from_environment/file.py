"""Settings of an environment file that AWS does not get."""

from pathlib import Path
from typing import Any

from holdfast.catalog import charts_in
from holdfast.validation.cloudformation import UNRESOLVED
from holdfast.validation.from_environment.existing import existing as existing_things
from holdfast.validation.from_environment.settings import Settings
from holdfast.validation.model import EnvironmentFile, User

IMAGES = {"image": "training", "agent_image": "health_agent", "operator_image": "job_operator"}
"""Sections of images, by the beginning of their attributes' names."""


def second_zone_place(network: Settings) -> str:
    """Path of the setting that names the second zone, by name or by id."""
    by_id = "control_plane_availability_zone_id"
    return network.at(by_id if network.is_set(by_id) else "control_plane_availability_zone")


def _zoned(file: Settings) -> list[Settings]:
    groups = file.cluster.instance_groups
    return [] if groups is UNRESOLVED else [group for group in groups if group.is_set("availability_zone")]


def environment_file(file: Settings, *, folder: Path | None) -> EnvironmentFile:
    network, existing, eks = file.network, file.network.existing, file.eks
    sections = [file.encryption, file.goodput, file.health, file.lifecycle, file.observability]
    sections += [] if eks is None else [eks]
    created, settings = _accounting(file)
    return file.item(
        EnvironmentFile,
        places={
            "cloud": "cloud",
            "new_network": "network",
            "existing_network": "network",
            "first_zone": network.at("availability_zone"),
            "group_zones": "cluster.instance_groups",
            "placed_twice": "cluster.instance_groups",
            "further_zones": network.at("additional_availability_zones"),
            "control_plane_zone": second_zone_place(network),
            "control_plane_subnets": "network.existing.control_plane_subnet_ids",
            "orchestrators": "slurm",
            "accounting_settings": "slurm.accounting",
            "stand_ins": "stand_ins",
            "health_mode": "health.mode",
            "goodput_target_percent": "goodput.target_percent",
            "charts_in_archives": "eks.chart_archives",
            **{f"{image}_source": f"images.{name}.source" for image, name in IMAGES.items()},
            **{f"{image}_settings": f"images.{name}.repository" for image, name in IMAGES.items()},
            **{name: place for section in sections for name, place in section.places_in(EnvironmentFile).items()},
        },
        **{name: value for section in sections for name, value in section.values_in(EnvironmentFile).items()}
        | _images(file.images)
        | {"users": _users(file.lifecycle.users), "grafana": file.observability.is_set("grafana")}
        | {"existing": existing_things(file)},
        new_network=network.is_set("cidr"),
        existing_network=network.is_set("existing"),
        first_zone=network.availability_zone,
        further_zones=network.additional_availability_zones,
        group_zones={
            group.at("availability_zone"): group.availability_zone
            for group in _zoned(file)
            if group.availability_zone is not UNRESOLVED
        },
        placed_twice=tuple(group.at("availability_zone") for group in _zoned(file) if group.override_vpc is not None),
        control_plane_zone=network.control_plane_availability_zone or network.control_plane_availability_zone_id,
        control_plane_subnets=0 if existing is None else _count(existing.control_plane_subnet_ids),
        orchestrators=tuple(name for name in ("slurm", "eks") if file.is_set(name)),
        accounting_created=created,
        accounting_settings=settings,
        stand_ins={name: getattr(file.stand_ins, name) for name in _set_names(file.stand_ins, *STAND_INS)},
        goodput_target_percent=file.goodput.target_percent,
        health_mode=file.health.mode,
        egress=network.egress,
        charts_in_archives=_archives(eks, folder),
        data=file.written,
    )


def _images(images: Settings | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for attribute, name in IMAGES.items():
        image = None if images is None else getattr(images, name)
        if image is not None:
            found[f"{attribute}_source"] = image.source
            found[f"{attribute}_settings"] = _set_names(image, "repository", "digest")
    return found


def _archives(eks: Settings | None, folder: Path | None) -> Any:
    if eks is None or eks.chart_archives is None:
        return ()
    return (
        UNRESOLVED
        if UNRESOLVED in (folder or UNRESOLVED, eks.chart_archives)
        else tuple(charts_in(folder / eks.chart_archives))
    )


STAND_INS = ("gpu", "efa", "lustre", "image")


def _set_names(settings: Settings, *names: str) -> tuple[str, ...]:
    return tuple(name for name in names if settings.is_set(name))


def _count(values: Any) -> Any:
    return values if values is UNRESOLVED else len(values)


def _accounting(file: Settings) -> tuple[Any, tuple[str, ...]]:
    accounting = None if file.slurm is None else file.slurm.accounting
    if accounting is None:
        return None, ()
    return accounting.create, _set_names(accounting, "endpoint", "port", "database", "secret_arn")


def _users(users: Any) -> Any:
    if users is UNRESOLVED:
        return users
    return tuple(user.item(User) for user in users)
