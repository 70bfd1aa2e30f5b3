"""Stacks: which constructs an environment is made of, and how they are wired. No resource detail in here."""

from holdfast_stacks.foundations import removal_policy
from holdfast_stacks.from_context import environment_of
from holdfast_stacks.guard import check_changes
from holdfast_stacks.hyperpod import HyperPodStack
from holdfast_stacks.kubernetes import node_settings

__all__ = ["HyperPodStack", "check_changes", "environment_of", "node_settings", "removal_policy"]
