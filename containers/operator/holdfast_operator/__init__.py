"""Operator of HoldfastJobs: pods that keep name and rank; a lost or unhealthy one is replaced, the others train on."""

__all__: list[str] = []
