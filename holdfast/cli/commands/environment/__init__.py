"""Verbs about an environment file: init, check, explain, diff, plan, import."""

__all__ = ["check", "diff", "explain", "import_", "init", "plan"]
