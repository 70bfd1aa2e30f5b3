"""Stand-in for ``docker`` without a container engine, so that the CDK can publish images to the embedded AWS."""

from pathlib import Path

from holdfast.localcloud.docker_stand_in.program import (
    ManifestStore,
    StandInError,
    check,
    instructions,
    main,
    manifest_of,
)

SCRIPT = Path(__file__).resolve().parent / "docker.sh"
"""For ``CDK_DOCKER``, which takes a program without arguments."""

__all__ = ["SCRIPT", "ManifestStore", "StandInError", "check", "instructions", "main", "manifest_of"]
