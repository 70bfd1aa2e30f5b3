"""
Executor: the process that acts on its node, limited to the actions of ``words``.

It identifies the node and verifies each action itself: its client may be compromised. It exits with the agent.
"""

import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Optional, Protocol

from holdfast_agent.aws import SAGEMAKER, Api, AwsError, Settings
from holdfast_agent.remedies.api_way import ApiAsker
from holdfast_agent.remedies.breaker import Stage
from holdfast_agent.remedies.kubernetes_api import KubernetesApi
from holdfast_agent.remedies.kubernetes_ways import KubernetesBook, LabelAsker
from holdfast_agent.remedies.settings import RemedySettings
from holdfast_agent.remedies.slurm_ways import RefusedError, SlurmAsker, SlurmBook, requeue
from holdfast_agent.remedies.words import (
    MOST_BYTES,
    Answer,
    Request,
    View,
    WordsError,
    answer_line,
    parse_request,
)
from holdfast_agent.slurm import Program, SlurmError
from holdfast_common import KubernetesError

RESET_S = 30.0
REQUEUES, REQUEUE_PAUSE_S = 3, 0.5


class Book(Protocol):
    def look(self) -> View: ...

    def write(self, stage: Stage, remedy: str, fault: str = "") -> None: ...

    def asked(self, remedy: str) -> None: ...

    def clear(self) -> None: ...


class Asker(Protocol):
    def ask(self, remedy: str) -> None: ...

    def force(self, remedy: str) -> None: ...


class Hands:
    """Acts on one node; book, asker and program follow from the settings."""

    def __init__(
        self,
        *,
        settings: RemedySettings,
        book: Optional[Book] = None,
        asker: Optional[Asker] = None,
        program: Optional[Program] = None,
    ) -> None:
        self._settings = settings
        self._program = program or Program()
        self._book = book or _book(settings, self._program)
        self._asker = asker or _asker(settings, self._program)

    def serve(self, line: socket.socket) -> None:
        while True:
            received = line.recv(MOST_BYTES)
            if not received:
                return
            try:
                request = parse_request(received)
            except WordsError as error:
                line.send(answer_line(Answer(number=-1, deed="look", outcome="refused", why=str(error))))
                continue
            line.send(answer_line(self.do(request)))

    def do(self, request: Request) -> Answer:
        """Run one action; every failure is an answer."""
        number, deed = request.number, request.deed
        try:
            outcome, why, view = self._do(request)
        except RefusedError as error:
            return Answer(number=number, deed=deed, outcome="in-use" if error.in_use else "refused", why=str(error))
        except KubernetesError as error:
            # A right that is missing stays missing; a conflict is somebody else's change, and passes.
            final = error.code in (400, 401, 403, 404, 405, 422)
            return Answer(number=number, deed=deed, outcome="refused" if final else "failed", why=str(error))
        except AwsError as error:
            final = 400 <= error.status < 500
            return Answer(number=number, deed=deed, outcome="refused" if final else "failed", why=str(error))
        except (SlurmError, OSError, ValueError, KeyError, TypeError) as error:
            return Answer(number=number, deed=deed, outcome="failed", why=f"{type(error).__name__}: {error}")
        return Answer(number=number, deed=deed, outcome=outcome, why=why, view=view)

    def _do(self, request: Request) -> "tuple[str, str, Optional[View]]":
        deed, remedy = request.deed, request.remedy
        if deed == "look":
            return "done", "", self._book.look()
        if deed == "claim":
            return self._claim(remedy, request.subject)
        if deed == "clear":
            self._book.clear()
        elif deed in ("go", "refuse"):
            self._check()
            self._book.write(Stage.ASKED if deed == "go" else Stage.REFUSED, remedy)
        elif deed in ("ask", "force"):
            self._check()
            self._act(deed, remedy)
            self._requeue(request.subject.split(",") if request.subject else [])
        elif deed == "requeue":
            requeue(request.subject, host=self._settings.host, program=self._program)
        elif deed == "reset":
            self._check()
            _reset(request.subject)
        return "done", "", None

    def _requeue(self, tasks: Sequence[str]) -> None:
        """A failed requeue does not undo the request; a task that just ends may be requeued in a second."""
        for task in tasks:
            for _ in range(REQUEUES):
                with suppress(RefusedError, SlurmError):
                    requeue(task, host=self._settings.host, program=self._program)
                    break
                time.sleep(REQUEUE_PAUSE_S)

    def _claim(self, remedy: str, fault: str) -> "tuple[str, str, Optional[View]]":
        self._check()
        view = self._book.look()
        if view.is_controller:
            return "refused", "this node is the controller, which is never replaced or rebooted", view
        if view.foreign:
            return ("in-use" if view.asks else "refused"), view.foreign, view
        if view.is_asked:
            # The mark may be of an earlier life of this node, and the request of HyperPod's own agent.
            return "in-use", f"request already pending for this node: {view.asks}", view
        own = next((mark for mark in view.marks if mark.node == view.me), None)
        if own is None or own.stage is not Stage.ALLOW:
            self._book.write(Stage.CLAIM, remedy, fault)
        return "done", "", view

    def _act(self, deed: str, remedy: str) -> None:
        view = self._book.look()
        marked = any(mark.node == view.me and mark.stage is Stage.ASKED for mark in view.marks)
        if not marked:
            raise RefusedError("refused: the node must be marked as going first")
        if deed == "ask":
            self._asker.ask(remedy)
            if not view.is_asked:
                self._book.asked(remedy)
        else:
            self._asker.force(remedy)

    def _check(self) -> None:
        if self._settings.is_controller:
            raise RefusedError("this node is the controller, which is never replaced or rebooted")
        if self._settings.mode != "act":
            raise RefusedError("remedies.mode is observe: no action taken")


def _book(settings: RemedySettings, program: Program) -> Book:
    if settings.orchestrator == "eks":
        return KubernetesBook(settings=settings, api=KubernetesApi())
    return SlurmBook(settings=settings, program=program)


def _asker(settings: RemedySettings, program: Program) -> Asker:
    if settings.way == "api":
        return ApiAsker(settings=settings, api=Api(SAGEMAKER, settings=Settings.read()))
    if settings.way == "label":
        return LabelAsker(settings=settings, api=KubernetesApi())
    return SlurmAsker(settings=settings, program=program)


def _reset(device: str) -> None:
    """Reset a GPU that is unused, if NVIDIA's program exists and may; raises RefusedError."""
    try:
        done = subprocess.run(
            ["nvidia-smi", "--gpu-reset", "-i", device],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=RESET_S,
            text=True,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RefusedError(f"nvidia-smi: {error}") from None
    if done.returncode != 0:
        raise RefusedError(f"nvidia-smi: {(done.stderr or done.stdout).strip()[-300:]}")
