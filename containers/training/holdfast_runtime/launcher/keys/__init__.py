"""
The store's entries between local ranks and other launchers, and which go where. The ranks' side is
`holdfast_runtime.store`.
"""

from holdfast_runtime.launcher.keys.relay import KeyRelay
from holdfast_runtime.launcher.keys.shared import SharedKeys

__all__ = ["KeyRelay", "SharedKeys"]
