class RefusedError(Exception):
    """The container is not possible; the message is the line that srun prints."""
