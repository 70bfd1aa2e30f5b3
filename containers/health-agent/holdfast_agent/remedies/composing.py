"""Marks and decider, by the settings of an agent. Clients of AWS and Kubernetes are loaded where they are used."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Optional, Union

from holdfast_agent.remedies.decider import Decider
from holdfast_agent.remedies.seams import ClusterMarks
from holdfast_agent.remedies.settings import RemedySettings
from holdfast_agent.remedies.slurm_marks import SlurmMarks, decides
from holdfast_agent.slurm import Program

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast_agent.aws import Api
    from holdfast_agent.remedies.kubernetes_marks import KubernetesMarks
    from holdfast_agent.signals import Happening
    from holdfast_common import KubernetesClient

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def marks_of(settings: RemedySettings) -> "Union[SlurmMarks, KubernetesMarks]":
    if settings.orchestrator == "eks":
        from holdfast_agent.remedies.kubernetes_marks import KubernetesMarks

        return KubernetesMarks(client=in_cluster, host=settings.host)
    return SlurmMarks(program=Program(), host=settings.host)


def decider_of(
    settings: RemedySettings,
    *,
    may_act: "Optional[Callable[[], bool]]" = None,
    report: "Optional[Callable[[Happening], None]]" = None,
) -> Decider:
    """Decider of a cluster; on Slurm it acts where the controller does."""
    marks: ClusterMarks = marks_of(settings)
    if settings.way == "api":
        from holdfast_agent.remedies.api_requests import ApiRequests

        marks = ApiRequests(marks, cluster=settings.cluster, api=_sagemaker)
    if may_act is None:
        program = Program()

        def may_act() -> bool:
            return decides(program, host=settings.host)

    return Decider(settings=settings, marks=marks, may_act=may_act, report=report)


def in_cluster(account: Path = ACCOUNT) -> "KubernetesClient":
    """Client of a pod's service account; the token is renewed by the kubelet, and so read each time."""
    from holdfast_common import KubernetesClient

    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    endpoint = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    token = (account / "token").read_text("ascii").strip()
    return KubernetesClient(endpoint=endpoint, authority=(account / "ca.crt").read_text("ascii"), token=token)


def _sagemaker() -> "Api":
    from holdfast_agent.aws import SAGEMAKER, Api, Settings

    return Api(SAGEMAKER, settings=Settings.read())
