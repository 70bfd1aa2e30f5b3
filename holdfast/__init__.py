"""Holdfast: define, plan, rehearse and operate HyperPod clusters. No CDK import anywhere in this package."""

__version__ = "0.1.0"

__all__ = ["__version__"]
