"""What every part of the control plane works with: its tools, and the memory that outlives it."""

from holdfast.localcloud.hyperpod.shared.memory import Memory, Return
from holdfast.localcloud.hyperpod.shared.tools import EMBEDDED_PORT, KNOWN_FAILURES, Tools, munge_key

__all__ = ["EMBEDDED_PORT", "KNOWN_FAILURES", "Memory", "Return", "Tools", "munge_key"]
