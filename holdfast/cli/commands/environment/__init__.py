"""Verbs about an environment file: check, explain, diff, plan, import."""

__all__ = ["check", "diff", "explain", "import_", "plan"]
