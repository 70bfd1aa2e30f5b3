"""Stacks: which constructs an environment is made of, and how they are wired. No resource detail in here."""

from stacks._hyperpod import HyperPodStack

__all__ = ["HyperPodStack"]
