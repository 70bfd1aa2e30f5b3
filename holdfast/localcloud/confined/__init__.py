"""
Files in directories that others write to: no path and no symbolic link leads out.

Users of the nodes may replace anything at any moment, so the kernel decides while it opens: openat2(2), Linux 5.6.

    Inside(root=file_system, path="data/a.bin", links=Links.REFUSED).open("rb")
    Inside(root=node.root, path="/etc/hosts").replace(b"...")      # links resolve as on the node
"""

from holdfast.localcloud.confined.paths import safe_path

from .inside import Inside
from .openat2 import Links

__all__ = ["Inside", "Links", "safe_path"]
