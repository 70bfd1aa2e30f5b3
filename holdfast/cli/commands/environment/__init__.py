"""Verbs about an environment file: check, diff, plan, import."""

__all__ = ["check", "diff", "import_", "plan"]
