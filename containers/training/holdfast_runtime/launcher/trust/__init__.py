"""
Who belongs to a run: its token, where it comes from, and links on which nobody else can speak.

Every user of a node may connect to a launcher's port, or listen where a launcher will call. So both sides prove that
they know the run's token over nonces of both, and all that follows on the connection is sealed with a key of it.
"""

from holdfast_runtime.launcher.trust._handshake import Proofs
from holdfast_runtime.launcher.trust._seal import SealedLine
from holdfast_runtime.launcher.trust._token import TokenError, run_token

__all__ = ["Proofs", "SealedLine", "TokenError", "run_token"]
