"""Settings of an environment file that AWS does not get."""

from pathlib import Path
from typing import Any

from holdfast.catalog import charts_in
from holdfast.validation.cloudformation import UNRESOLVED
from holdfast.validation.from_environment.existing import existing as existing_things
from holdfast.validation.from_environment.settings import Settings
from holdfast.validation.model import EnvironmentFile, User


def second_zone_place(network: Settings) -> str:
    """Path of the setting that names the second zone, by name or by id."""
    by_id = "control_plane_availability_zone_id"
    return network.at(by_id if network.is_set(by_id) else "control_plane_availability_zone")


def _zoned(file: Settings) -> list[Settings]:
    groups = file.cluster.instance_groups
    return [] if groups is UNRESOLVED else [group for group in groups if group.is_set("availability_zone")]


def environment_file(file: Settings, *, folder: Path | None) -> EnvironmentFile:
    network, existing, observability, eks = file.network, file.network.existing, file.observability, file.eks
    training = None if file.images is None else file.images.training
    agent = None if file.images is None else file.images.health_agent
    operator = None if file.images is None else file.images.job_operator
    created, settings = _accounting(file)
    return EnvironmentFile(
        path="",
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
            "image_source": "images.training.source",
            "image_settings": "images.training.repository",
            "agent_image_source": "images.health_agent.source",
            "agent_image_settings": "images.health_agent.repository",
            "operator_image_source": "images.job_operator.source",
            "operator_image_settings": "images.job_operator.repository",
            "stand_ins": "stand_ins",
            "users": "lifecycle.users",
            "scripts": "lifecycle.scripts",
            "health_mode": "health.mode",
            "breaker_share": "health.breaker_share",
            "checks": "health.checks",
            "prometheus": "observability.prometheus",
            "kms_key": "encryption.kms_key",
            "goodput_target_percent": "goodput.target_percent",
            "checkpoint_interval_s": "goodput.checkpoint_interval_s",
            "grafana": "observability.grafana",
            "alarm_emails": "observability.alarm_emails",
            "alarms": "observability.alarms",
            "training_operator": "eks.training_operator",
            "observability_addon": "eks.observability_addon",
            "chart_archives": "eks.chart_archives",
            "charts_in_archives": "eks.chart_archives",
        },
        cloud=file.cloud,
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
        image_source=None if training is None else training.source,
        image_settings=() if training is None else _set_names(training, "repository", "digest"),
        agent_image_source=None if agent is None else agent.source,
        agent_image_settings=() if agent is None else _set_names(agent, "repository", "digest"),
        operator_image_source=None if operator is None else operator.source,
        operator_image_settings=() if operator is None else _set_names(operator, "repository", "digest"),
        stand_ins={name: getattr(file.stand_ins, name) for name in _set_names(file.stand_ins, *STAND_INS)},
        goodput_target_percent=file.goodput.target_percent,
        checkpoint_interval_s=file.goodput.checkpoint_interval_s,
        kms_key=file.encryption.kms_key,
        users=_users(file.lifecycle.users),
        scripts=file.lifecycle.scripts,
        health_mode=file.health.mode,
        breaker_share=file.health.breaker_share,
        checks=file.health.checks,
        egress=network.egress,
        chart_archives=None if eks is None else eks.chart_archives,
        charts_in_archives=_archives(eks, folder),
        training_operator=False if eks is None else eks.training_operator,
        observability_addon=False if eks is None else eks.observability_addon,
        prometheus=observability.prometheus,
        grafana=observability.is_set("grafana"),
        alarms=observability.alarms,
        alarm_emails=observability.alarm_emails,
        data=file.written,
        existing=existing_things(file),
    )


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
    return tuple(
        User(
            path=user.path,
            places=user.places(name="name", uid="uid", home="home"),
            name=user.name,
            uid=user.uid,
            home=user.home,
        )
        for user in users
    )
