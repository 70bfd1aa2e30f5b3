"""The recipes of examples/recipes are short, and what is beside them is what Slurm and Kubernetes take."""

import re
import shlex
from pathlib import Path

import pytest
import yaml
from kubernetes_schemas import MINORS, complaints

RECIPES = Path(__file__).parents[3] / "examples" / "recipes"
SCRIPTS = ("fsdp2.py", "hsdp.py", "elastic_fsdp2.py", "tp_dp.py", "pp_dp.py", "hugging_face.py", "lightning_hsdp.py")


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_recipe_is_one_screen_or_two(script: str) -> None:
    assert len((RECIPES / script).read_text().splitlines()) <= 150


@pytest.mark.parametrize("minor", MINORS)
def test_kubernetes_takes_the_manifest(minor: str) -> None:
    objects = [item for item in yaml.safe_load_all((RECIPES / "recipe.yaml").read_text()) if item]
    assert [complaint for item in objects for complaint in complaints(item, minor)] == []


def test_one_pod_more_than_train_in_the_manifest() -> None:
    text = (RECIPES / "recipe.yaml").read_text()
    job = list(yaml.safe_load_all(text))[1]["spec"]
    nodes, spares = (int(re.search(rf"--{name} (\d+)", text)[1]) for name in ("nnodes", "spare-nodes"))  # type: ignore[index]
    assert job["completions"] == job["parallelism"] == nodes
    assert spares == 1


def test_the_page_runs_every_recipe_under_its_name() -> None:
    lines = [line for line in (RECIPES / "README.md").read_text().splitlines() if "holdfast-run" in line]
    run = [next(word for word in shlex.split(line) if word.endswith(".py")) for line in lines if ".py" in line]
    assert set(run) == set(SCRIPTS)
