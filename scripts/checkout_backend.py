"""
Build backend of ``pip install .``: one wheel with the packages of all wheels of this repository (PEP 517).

``scripts/build_wheels.py`` builds the wheels that are released.
"""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from setuptools import build_meta

from build_wheels import stage
from distributions import whole


def build_wheel(
    wheel_directory: str,
    config_settings: Mapping[str, Any] | None = None,
    metadata_directory: str | None = None,  # noqa: ARG001 - PEP 517 gives it
) -> str:
    """Return the name of the wheel in ``wheel_directory``."""
    target = Path(wheel_directory).resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(stage(whole(), Path(folder, "wheel")))
        name: str = build_meta.build_wheel(str(target), config_settings)
        os.chdir(target)
    return name
