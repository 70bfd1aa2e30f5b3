"""The cache of decoded data: decoded once per node, bounded, outlives its users, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast_runtime.data import DataError, DecodedCache, cache_folder, own_cache, remove_abandoned

MEGABYTE = 1 << 20


class Decoder:
    """Makes an array of the size that the content says, and counts."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, content: bytes) -> Any:
        self.calls += 1
        return np.full(int(content), self.calls, dtype=np.uint8)


def opened(tmp_path: Path, *, limit_bytes: int = MEGABYTE, wait_s: float = 10) -> DecodedCache:
    return DecodedCache("job", limit_bytes=limit_bytes, wait_s=wait_s, root=tmp_path)


@contextmanager
def process(program: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """A Python process that is killed at the end."""
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as started:
        try:
            yield started
        finally:
            started.send_signal(signal.SIGKILL)


def line_of(started: "subprocess.Popen[str]") -> str:
    assert started.stdout is not None
    return started.stdout.readline().strip()


def test_what_was_decoded_is_mapped_and_not_decoded_again(tmp_path: Path) -> None:
    decode = Decoder()
    with opened(tmp_path) as first:
        made = first.get(b"1000", decode, decoder="v1")
    with opened(tmp_path) as second:
        found = second.get(b"1000", decode, decoder="v1")
        assert second.get(b"1000", decode, decoder="v2")[0] == 2, "another decoder is another entry"
    assert isinstance(found, np.memmap)
    assert np.array_equal(made, found)
    assert not made.flags.writeable
    assert not found.flags.writeable


@pytest.mark.parametrize(
    "array",
    [
        np.array(3.5),
        np.zeros((0, 3)),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.arange(10)[::2],
        np.array([True]),
    ],
)
def test_any_plain_array_comes_back_as_it_was(tmp_path: Path, array: Any) -> None:
    with opened(tmp_path) as cache:
        for _ in range(2):
            found = cache.get(b"", lambda _: array, decoder="v1")
            assert np.array_equal(found, array)
            assert (found.dtype, found.shape) == (array.dtype, array.shape)


def test_arrays_of_objects_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as cache:
        with pytest.raises(DataError, match="array of a plain type, got object"):
            cache.get(b"", lambda _: np.array([object()]), decoder="v1")
        assert cache.size() == 0


def test_the_cache_stays_inside_its_limit_and_forgets_what_was_not_used_for_long(tmp_path: Path) -> None:
    decode = Decoder()
    with opened(tmp_path, limit_bytes=10_000) as cache:
        for number in range(40):
            cache.get(b"1000", decode, decoder=f"v{number}")
            cache.get(b"1000", decode, decoder="v0")
            assert cache.size() <= 10_000
        assert decode.calls == 40, "what is used all the time stays"
        assert cache.size() > 5_000


def test_what_is_larger_than_the_cache_is_handed_on(tmp_path: Path) -> None:
    decode = Decoder()
    with opened(tmp_path, limit_bytes=10_000) as cache:
        assert len(cache.get(b"20000", decode, decoder="v1")) == 20_000
        assert len(cache.get(b"20000", decode, decoder="v1")) == 20_000
        assert cache.size() == 0
    assert decode.calls == 2


@pytest.mark.root
def test_full_shared_memory_costs_the_cache_and_not_the_training(tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(tmp_path)], check=True, timeout=10)
    try:
        with opened(tmp_path) as cache:
            for number in range(3):
                assert len(cache.get(b"50000", Decoder(), decoder=f"v{number}")) == 50_000
            assert cache.size() <= 65_536
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True, timeout=10)


def test_a_decoder_that_fails_leaves_the_way_free(tmp_path: Path) -> None:
    def fail(_: bytes) -> Any:
        raise OSError("damaged picture")

    with opened(tmp_path) as cache:
        with pytest.raises(OSError, match="damaged picture"):
            cache.get(b"10", fail, decoder="v1")
        assert len(cache.get(b"10", Decoder(), decoder="v1")) == 10


USER = """
import sys, time
import numpy as np
from pathlib import Path
from holdfast_runtime.data import DecodedCache
cache = DecodedCache("job", limit_bytes=100_000, root=Path(sys.argv[1]))
def decode(content):
    print("decoding", flush=True)
    sys.stdin.readline()
    return np.full(10_000, 7, dtype=np.uint8)
print(int(cache.get(b"x", decode, decoder="v1").sum()), flush=True)
sys.stdin.readline()
"""


def test_ranks_of_a_node_decode_once_and_the_others_wait(tmp_path: Path) -> None:
    with process(USER, str(tmp_path)) as first:
        assert line_of(first) == "decoding"
        found: list[Any] = []
        with opened(tmp_path) as cache:
            other = threading.Thread(target=lambda: found.append(cache.get(b"x", Decoder(), decoder="v1")))
            other.start()
            assert first.stdin is not None
            print(file=first.stdin, flush=True)
            assert line_of(first) == "70000"
            other.join(timeout=10)
    assert int(found[0].sum()) == 70_000


def test_waiting_for_another_decoder_has_a_deadline(tmp_path: Path) -> None:
    decode = Decoder()
    with process(USER, str(tmp_path)) as stuck:
        assert line_of(stuck) == "decoding"
        with opened(tmp_path, wait_s=0.1) as cache:
            assert len(cache.get(b"x", lambda _: decode(b"5"), decoder="v1")) == 5
    assert decode.calls == 1


def test_a_killed_writer_blocks_nobody_and_leaves_nothing(tmp_path: Path) -> None:
    with process(USER, str(tmp_path)) as writer, opened(tmp_path) as cache:
        assert line_of(writer) == "decoding"
        writer.send_signal(signal.SIGKILL)
        writer.wait(timeout=10)
        (partial,) = cache.folder.glob("*.partial")
        os.truncate(partial, 50_000)
        assert len(cache.get(b"x", lambda _: Decoder()(b"5"), decoder="v1")) == 5
        assert not list(cache.folder.glob("*.partial"))


def test_the_next_user_removes_what_a_killed_writer_left(tmp_path: Path) -> None:
    with process(USER, str(tmp_path)) as writer:
        assert line_of(writer) == "decoding"
        with opened(tmp_path) as cache:
            assert list(cache.folder.glob("*.partial")), "of one that lives, it stays"
        writer.send_signal(signal.SIGKILL)
        writer.wait(timeout=10)
    with opened(tmp_path) as cache:
        assert not list(cache.folder.glob("*.partial"))


def test_entries_outlive_the_process_that_made_them(tmp_path: Path) -> None:
    with process(USER, str(tmp_path)) as writer:
        assert line_of(writer) == "decoding"
        assert writer.stdin is not None
        print(file=writer.stdin, flush=True)
        assert line_of(writer) == "70000"
        writer.send_signal(signal.SIGKILL)
        writer.wait(timeout=10)
    decode = Decoder()
    with opened(tmp_path) as cache:
        assert int(cache.get(b"x", decode, decoder="v1").sum()) == 70_000
    assert decode.calls == 0


def test_the_owner_keeps_the_cache_through_the_death_of_ranks_and_removes_it_at_the_end(tmp_path: Path) -> None:
    with own_cache("job", root=tmp_path) as folder:
        with opened(tmp_path) as cache:
            cache.get(b"10", Decoder(), decoder="v1")
        assert remove_abandoned(root=tmp_path) == []
        assert list(folder.glob("*.entry"))
    assert not list(tmp_path.iterdir())


def test_the_cache_of_a_killed_owner_is_removed_by_the_next_and_one_in_use_is_not(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from holdfast_runtime.data import own_cache\n"
        "with own_cache(sys.argv[2], root=Path(sys.argv[1])): print('owned', flush=True); sys.stdin.readline()"
    )
    with process(program, str(tmp_path), "dead") as dead, process(program, str(tmp_path), "alive") as alive:
        assert line_of(dead) == line_of(alive) == "owned"
        dead.send_signal(signal.SIGKILL)
        dead.wait(timeout=10)
        with own_cache("next", root=tmp_path):
            assert not cache_folder("dead", root=tmp_path).exists()
            assert cache_folder("alive", root=tmp_path).exists()


@pytest.mark.parametrize("job", ["", "../x", "a/b", ".hidden", "x" * 101])
def test_a_name_that_is_no_folder_name_is_refused(tmp_path: Path, job: str) -> None:
    with pytest.raises(DataError, match="job's name is"):
        DecodedCache(job, limit_bytes=1, root=tmp_path)


def test_a_limit_that_is_no_size_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="limit_bytes must be positive"):
        DecodedCache("job", limit_bytes=0, root=tmp_path)
