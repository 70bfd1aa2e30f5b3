import contextlib
import os
import secrets
import threading
from pathlib import Path

from holdfast.localcloud.hyperpod.model import Cluster


def munge_key(home: Path, cluster: Cluster) -> bytes:
    path = home / "hyperpod" / "keys" / f"{cluster.cluster_id}.munge"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.suppress(FileExistsError):
        fresh = path.with_name(f"{path.name}.{threading.get_ident()}")
        fresh.write_bytes(secrets.token_bytes(128))
        fresh.chmod(0o600)
        try:
            os.link(fresh, path)
        finally:
            fresh.unlink()
    return path.read_bytes()
