"""The processes of a local cloud: how each is, and what starts them again when they die."""

from holdfast.localcloud.keeper._state import ProcessState, control_plane, process_state

__all__ = ["ProcessState", "control_plane", "process_state"]
