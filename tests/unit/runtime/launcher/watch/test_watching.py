"""How long a launcher may be silent, from how late heartbeats were before."""

import pytest

from holdfast_runtime.launcher.links import lateness_s, patience_s


def test_a_launcher_that_is_late_itself_waits_longer_for_others_and_not_for_ever() -> None:
    assert patience_s(1.5, late_s=0.0) == 1.5
    assert patience_s(1.5, late_s=0.5) == 3.5
    assert patience_s(1.5, late_s=60.0) == 15.0


def test_a_launcher_whose_signs_of_life_come_late_is_known_to_until_they_come_in_time_again() -> None:
    late_s = 0.0
    for silent_s in (0.5, 0.5, 1.3, 0.5):
        late_s = lateness_s(late_s, late_s=silent_s - 0.5, beats=silent_s / 0.5)
    forgotten_s = late_s
    for _ in range(60):
        forgotten_s = lateness_s(forgotten_s, late_s=0.0, beats=1.0)

    assert lateness_s(0.0, late_s=0.0, beats=1.0) == 0.0
    assert late_s == pytest.approx(0.8 * 0.9)
    assert forgotten_s < 0.01


def test_many_lines_in_a_short_time_do_not_make_lateness_forgotten() -> None:
    late_s = 1.0
    for _ in range(100):
        late_s = lateness_s(late_s, late_s=-0.499, beats=0.002)

    assert late_s > 0.9
