import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def made_once(place: Path) -> Iterator[Path]:
    """Yield a new folder that becomes ``place``, unless another process with the same content was faster."""
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=".", dir=place.parent))
    try:
        yield fresh
        fresh.chmod(0o755)
        fresh.rename(place)
    except OSError:
        if not place.is_dir():
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
