"""
Home directory of a local cloud: ownership, keys, removal.

Root runs and unpickles its content. So a home is marked, writable by its owner only, and only our own files are
removed.
"""

from holdfast.localcloud.home.cache import cache_folder
from holdfast.localcloud.home.errors import LocalCloudError
from holdfast.localcloud.home.keys import Keys, fresh_keys, keys_of, made_keys
from holdfast.localcloud.home.marking import (
    LOCK,
    MARKER,
    OURS,
    HomeError,
    claim,
    is_fresh,
    make_folder,
    recognise,
    release,
    unwritable,
)
from holdfast.localcloud.home.once import made_once
from holdfast.localcloud.home.private import private_bytes, write_private
from holdfast.localcloud.home.setting_aside import set_aside, spared
from holdfast.localcloud.home.signing import signed_headers
from holdfast.localcloud.home.trees import remove_tree, remove_tree_quietly
from holdfast.localcloud.home.version import installed_version

__all__ = [
    "LOCK",
    "MARKER",
    "OURS",
    "HomeError",
    "Keys",
    "LocalCloudError",
    "cache_folder",
    "claim",
    "fresh_keys",
    "installed_version",
    "is_fresh",
    "keys_of",
    "made_keys",
    "made_once",
    "make_folder",
    "private_bytes",
    "recognise",
    "release",
    "remove_tree",
    "remove_tree_quietly",
    "set_aside",
    "signed_headers",
    "spared",
    "unwritable",
    "write_private",
]
