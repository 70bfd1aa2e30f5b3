"""Program that is sent to nodes and pods: ``probe.py``."""

from importlib import resources

PROGRAM = resources.files("holdfast.cli.collectors").joinpath("probe.py").read_text()
