"""Verbs for jobs: submit, list, explain, resize, cancel."""

__all__ = [
    "jobs",
    "packages",
    "scale",
    "submit",
    "why",
]
