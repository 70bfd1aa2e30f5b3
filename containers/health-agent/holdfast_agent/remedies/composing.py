"""Marks and decider, by the settings of an agent."""

from collections.abc import Callable
from typing import Optional, Union

from holdfast_agent.aws import SAGEMAKER, Api, Settings
from holdfast_agent.remedies.api_requests import ApiRequests
from holdfast_agent.remedies.decider import Decider
from holdfast_agent.remedies.kubernetes_marks import KubernetesMarks
from holdfast_agent.remedies.seams import ClusterMarks
from holdfast_agent.remedies.settings import RemedySettings
from holdfast_agent.remedies.slurm_marks import SlurmMarks, decides
from holdfast_agent.signals import Happening
from holdfast_agent.slurm import Program
from holdfast_common import ClusterAccess


def marks_of(settings: RemedySettings) -> "Union[SlurmMarks, KubernetesMarks]":
    if settings.orchestrator == "eks":
        return KubernetesMarks(client=ClusterAccess().client, host=settings.host)
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
        marks = ApiRequests(marks, cluster=settings.cluster, api=_sagemaker)
    if may_act is None:
        program = Program()

        def may_act() -> bool:
            return decides(program, host=settings.host)

    return Decider(settings=settings, marks=marks, may_act=may_act, report=report)


def _sagemaker() -> Api:
    return Api(SAGEMAKER, settings=Settings.read())
