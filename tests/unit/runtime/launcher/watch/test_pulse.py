"""Signs of life of all launchers come at one time, so that whoever gets several is woken once."""

import statistics
import sys
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from holdfast_runtime.control import Deadlines
from holdfast_runtime.launcher.links import HeartbeatThread

BEAT_S = 0.1
DEADLINES = replace(Deadlines(), beat=BEAT_S)


def test_launchers_that_begin_at_different_times_beat_at_the_same() -> None:
    beats: list[list[float]] = [[], []]
    pulses = [HeartbeatThread(links={0: listening(own)}, deadlines=DEADLINES) for own in beats]

    for pulse, phase in zip(pulses, (0.25, 0.75), strict=True):
        time.sleep((phase * BEAT_S - time.time()) % BEAT_S)
        pulse.start()
    time.sleep(12 * BEAT_S)
    for pulse in pulses:
        pulse.stop()

    first, second = (statistics.median(moment % BEAT_S for moment in own) for own in beats)
    assert min(map(len, beats)) >= 5, "about ten times in this time"
    assert abs(first - second) < BEAT_S / 4


def test_a_launcher_that_is_kept_from_its_work_knows_how_late_it_was() -> None:
    pulse = HeartbeatThread(links={}, deadlines=DEADLINES)
    pulse.start()
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(10.0)
    try:
        end_s = time.monotonic() + 5 * BEAT_S
        while time.monotonic() < end_s:
            pass
    finally:
        sys.setswitchinterval(before_s)
    deadline_s = time.monotonic() + 20.0
    while (late_s := pulse.late_s) < 2 * BEAT_S and time.monotonic() < deadline_s:
        time.sleep(BEAT_S / 10)
    while pulse.late_s >= late_s and time.monotonic() < deadline_s:
        time.sleep(BEAT_S / 10)
    forgotten_s = pulse.late_s
    pulse.stop()

    assert late_s >= 2 * BEAT_S
    assert forgotten_s < late_s


def listening(own: list[float]) -> Any:
    return SimpleNamespace(watches=True, beat=lambda: own.append(time.time()))
