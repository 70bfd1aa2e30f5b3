"""docs/do/planner.md has the formula of the code."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.planner import Checkpoints, Failures, Scenario, Strategy, first_order_goodput

PAGE = Path(__file__).parents[4] / "docs" / "do" / "planner.md"


@settings(max_examples=50, derandomize=True, deadline=None)
@given(
    st.integers(1, 1000),
    st.integers(0, 1),
    st.floats(0, 0.002),
    st.sampled_from(["checkpoint", "step"]),
    st.tuples(*[st.floats(1, 5000)] * 5),
)
def test_the_formula_on_the_page_is_the_one_of_the_code(
    instances: int, spares: int, rate: float, redo: str, seconds: tuple[float, float, float, float, float]
) -> None:
    detect, replace, resume, interval, write = (value / 3600 for value in seconds)
    half_step = 15 / 3600
    (formula,) = re.findall(r"```python\n(useful = .*?)```", PAGE.read_text(), re.DOTALL)
    values: dict[str, float | bool] = {
        "detect": detect,
        "replace": replace,
        "resume": resume,
        "interval": interval,
        "write": write,
        "rate": rate,
        "instances": instances,
        "spares": spares,
        "waits": True,
        "redo": (interval + write) / 2 if redo == "checkpoint" else half_step,
    }
    exec(formula, {}, values)
    scenario = Scenario(
        instances=instances,
        spares=spares,
        failures=Failures(per_instance_hour=rate),
        checkpoints=Checkpoints(interval_s=seconds[3], write_s=seconds[4]),
        strategy=Strategy(
            name="s",
            title="s",
            detect_s=seconds[0],
            replace_s=seconds[1],
            resume_s=seconds[2],
            redo="checkpoint" if redo == "checkpoint" else "step",
            redo_s=15.0,
        ),
    )

    assert values["goodput"] == pytest.approx(first_order_goodput(scenario))
