"""Syntax check of shell scripts."""

from holdfast.validation.shell.syntax import shell_mistake

__all__ = ["shell_mistake"]
