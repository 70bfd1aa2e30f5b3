"""What bash says of a script without running it. What the words mean is for rules.lifecycle."""

from holdfast.validation.shell.syntax import shell_mistake

__all__ = ["shell_mistake"]
