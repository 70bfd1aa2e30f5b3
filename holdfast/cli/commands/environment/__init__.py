"""Verbs about an environment file: init, check, diff, plan, import."""

__all__ = ["check", "diff", "import_", "init", "plan"]
