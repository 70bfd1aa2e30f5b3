"""Stacks: which constructs an environment is made of, and how they are wired. No resource detail in here."""

from stacks._guard import check_changes
from stacks._hyperpod import HyperPodStack

__all__ = ["HyperPodStack", "check_changes"]
