"""What a user is told."""


class RefusedError(Exception):
    """The step cannot have this container; the message is the one line that srun prints."""
