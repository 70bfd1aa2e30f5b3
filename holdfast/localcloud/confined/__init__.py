"""
Files in directories that somebody else writes to: no path, and no symbolic link in it, leads out of the directory.

Root of this machine reads and writes what users of the nodes may replace at any moment, so a check before the opening
would come too early. The kernel decides while it opens: openat2(2), Linux 5.6.

    Inside(root=file_system, path="data/a.bin", links=Links.REFUSED).open("rb")
    Inside(root=node.root, path="/etc/hosts").replace(b"...")      # links lead where they lead for the node
"""

from holdfast.localcloud.confined.paths import safe_path

from .inside import Inside
from .openat2 import Links

__all__ = ["Inside", "Links", "safe_path"]
