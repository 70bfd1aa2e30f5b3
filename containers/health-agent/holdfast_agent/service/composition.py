import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Optional

from holdfast_agent.aws import LOGS, SAGEMAKER, Api, Settings
from holdfast_agent.configuration import Configuration
from holdfast_agent.controller import ClusterPoller, ControllerWatch
from holdfast_agent.coverage import Coverage
from holdfast_agent.detectors import (
    Checks,
    Clock,
    Detector,
    Disks,
    Fabric,
    Hma,
    KernelLog,
    Links,
    Mounts,
    Nvml,
    Slurmd,
    StuckProcesses,
    gpu_ports,
)
from holdfast_agent.launchers import LauncherSocket
from holdfast_agent.lending import Lender
from holdfast_agent.machine import Machine
from holdfast_agent.remedies import Decider, NodeMark, Remediator, RemedySettings, decider_of, leave_request, marks_of
from holdfast_agent.service.idle_detectors import idling
from holdfast_agent.service.interfaces import Companion, NoRemedies, Remedies
from holdfast_agent.service.metrics_threads import is_measured, measuring
from holdfast_agent.service.outbox import Outbox
from holdfast_agent.service.recording import Recording
from holdfast_agent.service.service import Service, clocks
from holdfast_agent.service.shipping import shippers
from holdfast_agent.service.state import StateFile, boot_identity
from holdfast_agent.shipping import EventShipper
from holdfast_agent.slurm import Program, installed_version
from holdfast_agent.status import StatusSocket
from holdfast_agent.verdicts import Engine, Policy, SnapshotError


def detectors_of(
    configuration: Configuration, *, skew_s: "Callable[[], float]" = lambda: 0.0
) -> "tuple[Detector, ...]":
    """The kernel log first: it explains what others see. ``skew_s``: AWS's clock minus this machine's."""
    node = configuration.node_instance_id or configuration.node_host
    nvml = (
        Nvml(library=configuration.nvml_library, expected=configuration.gpus_expected)
        if configuration.nvml_library
        else None
    )
    found: list[Detector] = [
        KernelLog(configuration.kernel_log_path, gpus=dict if nvml is None else nvml.gpus, gpu_ports=gpu_ports()),
        Mounts(paths=configuration.listed(configuration.mounts_paths), node=node),
        Disks(paths=configuration.listed(configuration.disks_paths), node=node),
        Fabric(root=configuration.fabric_root),
        Links(),
        Clock(skew_s=skew_s),
        Slurmd(),
        Hma(path=configuration.hma_path),
        Checks(directory=configuration.checks_directory),
    ]
    if nvml is not None:
        found.insert(1, nvml)
    if is_measured(configuration):
        found.append(Machine())
    found.append(StuckProcesses(own=lambda: frozenset(pid for one in found for pid in one.processes())))
    return tuple(found)


def serve(configuration: Configuration, *, file: str, assignments: Sequence[str] = ()) -> None:
    """Run until SIGTERM. Raises LockedError (another agent runs here) or OSError."""
    boot = boot_identity()
    node = configuration.node_instance_id or configuration.node_host
    state = StateFile(path=Path(configuration.state_path), node=node, boot=boot)
    state.lock()
    outbox = Outbox(
        path=Path(configuration.events_path) if configuration.events_path else None,
        cluster=configuration.cluster_name,
        node=configuration.node_instance_id,
    )
    watch = _watch(configuration)
    launchers = LauncherSocket(path=Path(configuration.socket_path)) if configuration.socket_path else None
    remedies = _remedies(configuration, launchers)
    engines: list[Engine] = []
    idle = idling(
        configuration,
        launchers,
        remedies,
        file=Path(file),
        assignments=assignments,
        standing=lambda: engines[0].standing() if engines else (),
    )
    shipping = shippers(configuration) if configuration.shipping_enabled and configuration.events_path else ()
    skew_s = (lambda: shipping[0].skew_s) if shipping else float
    detectors = (*detectors_of(configuration, skew_s=skew_s), *idle)
    coverage = Coverage()
    engine = _restored(state, outbox, detectors, coverage, watch, remedies, node=node, boot=boot)
    engines.append(engine)
    service = Service(
        detectors=detectors,
        engine=engine,
        outbox=outbox,
        state=state,
        remedies=remedies,
        launchers=launchers,
        watch=watch,
        companions=_companions(configuration, shipping),
        decider=_decider(configuration),
        recording=Recording(Path(configuration.recording_path)) if configuration.recording_path else None,
        coverage=coverage,
        described={
            "cluster": configuration.cluster_name,
            "node": configuration.node_instance_id,
            "host": configuration.node_host,
            "mode": configuration.remedies_mode,
            "boot": boot,
            "slurm": _slurm_version(configuration),
        },
    )
    service.measure(measuring(configuration, lambda: service.measured))
    status = StatusSocket(path=Path(configuration.status_path), answer=service.status)
    try:
        service.run(listeners=((status, status.serve),))
    finally:
        status.close()


def _restored(
    state: StateFile,
    outbox: Outbox,
    detectors: "tuple[Detector, ...]",
    coverage: Coverage,
    watch: Optional[ControllerWatch],
    remedies: Remedies,
    *,
    node: str,
    boot: str,
) -> Engine:
    policy = Policy.standard()
    known, same_boot, word = state.load()
    if word:
        print(word, file=sys.stderr, flush=True)
    if known is None:
        return Engine(policy=policy, boot_id=boot, node=node)
    outbox.restore(_object(known.get("outbox")))
    try:
        coverage.restore(known.get("coverage", ()), same_boot=same_boot)
    except (ValueError, TypeError) as problem:
        print(f"{state.path}: detectors that worked: saved state is invalid: {problem!r}", file=sys.stderr, flush=True)
    if same_boot:
        for detector in detectors:
            _restore(detector, _object(_object(known.get("detectors")).get(detector.name)))
        if watch is not None and known.get("watch"):
            watch.restore(_object(known["watch"]))
        if known.get("remedies") and not remedies.restore(_object(known["remedies"])):
            print(f"{state.path}: saved remedies are invalid, starting fresh", file=sys.stderr, flush=True)
    try:
        return Engine.restored(policy=policy, snapshot=_object(known.get("engine")), boot_id=boot)
    except SnapshotError as problem:
        print(f"{state.path}: {problem}; starting without incidents", file=sys.stderr, flush=True)
        return Engine(policy=policy, boot_id=boot, node=node)


def _restore(detector: Detector, memory: "dict[str, Any]") -> None:
    try:
        detector.restore(memory)
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        print(f"detector {detector.name}: invalid state, starting fresh: {problem!r}", file=sys.stderr, flush=True)


def _remedies(configuration: Configuration, launchers: Optional[LauncherSocket]) -> Remedies:
    if launchers is None:
        return NoRemedies()
    settings, mark = RemedySettings.of(configuration), None
    if settings.mode == "act" and settings.way != "none" and not settings.is_controller:
        mark = NodeMark(marks=marks_of(settings))
    return Remediator(
        settings=settings,
        tell=launchers.tell,
        boot_s=clocks().boot_s,
        mark=mark,
        leave=leave_request(Path(configuration.status_path)),
    )


def _decider(configuration: Configuration) -> Optional[Decider]:
    settings = RemedySettings.of(configuration)
    acts = settings.is_controller and settings.mode == "act" and settings.way != "none"
    if not acts or settings.orchestrator == "eks":  # there a Deployment decides
        return None
    return decider_of(settings)


def _watch(configuration: Configuration) -> Optional[ControllerWatch]:
    if not configuration.controller_enabled:
        return None
    settings = Settings.read()
    looker = ClusterPoller(
        cluster=configuration.cluster_name,
        sagemaker=Api(service=SAGEMAKER, settings=settings),
        logs=Api(service=LOGS, settings=settings),
        program=Program(),
        with_slurm=configuration.cluster_orchestrator != "eks",
    )
    return ControllerWatch(looker=looker)


def _slurm_version(configuration: Configuration) -> str:
    if configuration.cluster_orchestrator == "eks":
        return ""
    return installed_version()


def _companions(configuration: Configuration, shipping: "tuple[EventShipper, ...]") -> "tuple[Companion, ...]":
    if not configuration.lending_enabled or configuration.cluster_orchestrator == "eks":
        return shipping
    return (*shipping, Lender(program=Program(), notice_s=configuration.lending_notice_s))


def _object(value: Any) -> "dict[str, Any]":
    return value if isinstance(value, dict) else {}
