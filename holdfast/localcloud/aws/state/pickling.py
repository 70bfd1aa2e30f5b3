"""
Pickling of moto's state.

A backend is kept as its ``__dict__`` and restored in place; references to backends are kept as names. Bodies of S3
objects are separate files (`Bodies`), each written once; of AWS's managed policies only the account's changes are kept.
Locks are recreated, private keys travel as PEM, anonymous functions as code: a snapshot fits one version of Python and
moto only.
"""

import functools
import importlib
import io
import json
import marshal
import pickle
import threading
import types
import uuid
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import moto.backends
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from moto.core.base_backend import BackendDict, BaseBackend, backend_lock

from holdfast.localcloud.home import write_private

INLINE_BODY = 4096
BACKEND_DICT_OWN = ("backend", "service_name", "_use_boto3_regions", "_additional_regions", "_id")
LOCKS: dict[type, Callable[[], Any]] = {type(make()): make for make in (threading.Lock, threading.RLock)}


@dataclass(frozen=True)
class BodyRef:
    name: str


@dataclass
class Bodies:
    """Bodies of S3 objects as files, each written once."""

    folder: Path
    _names: "weakref.WeakKeyDictionary[Any, str]" = field(default_factory=weakref.WeakKeyDictionary)
    _written: set[str] = field(default_factory=set)
    _pending: dict[str, Any] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    def begin(self) -> None:
        """Start a snapshot: collect references until `finish`."""
        self._pending.clear()
        self._seen.clear()

    def ref(self, key: Any) -> BodyRef:
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = uuid.uuid4().hex
        if name not in self._written:
            self._pending[name] = key
        self._seen.add(name)
        return BodyRef(name)

    def write(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, key in self._pending.items():
            path = self.folder / name
            try:
                body = key.value
            except ValueError:  # deleted since; the snapshot that follows will not mention it
                body = b""
            write_private(path, body)
            self._written.add(name)
        self._pending.clear()

    def finish(self) -> None:
        """Delete bodies that the snapshot does not mention."""
        for name in self._written - self._seen:
            (self.folder / name).unlink(missing_ok=True)
        self._written &= self._seen

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def adopt(self, key: Any, name: str) -> None:
        self._names[key] = name
        self._written.add(name)

    def sweep(self) -> None:
        """Delete files that no restored object mentions."""
        if self.folder.is_dir():
            for path in self.folder.iterdir():
                if path.name not in self._written:
                    path.unlink()


def dump_backends(name: str, bodies: Bodies) -> bytes:
    backends = moto.backends.get_backend(name)  # type: ignore[call-overload]
    held = {
        (account, region): vars(backend)
        for account, regions in list(backends.items())
        for region, backend in list(regions.items())
    }
    extra = {key: value for key, value in vars(backends).items() if key not in BACKEND_DICT_OWN}
    buffer = io.BytesIO()
    _Pickler(buffer, bodies).dump({"backends": held, "extra": extra})
    return buffer.getvalue()


def load_backends(name: str, data: bytes, bodies: Bodies) -> None:
    backends = moto.backends.get_backend(name)  # type: ignore[call-overload]
    kept = _Unpickler(io.BytesIO(data), bodies).load()
    for (account, region), contents in kept["backends"].items():
        regions = backends[account]
        if region not in regions.keys():  # noqa: SIM118 - its own "in" is about regions that could be
            # Unmade: making one takes EC2 more than a second, and all of it is replaced here.
            dict.__setitem__(regions, region, backends.backend.__new__(backends.backend))
        backend = regions[region]
        vars(backend).clear()
        vars(backend).update(contents)
    vars(backends).update(kept["extra"])


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, bodies: Bodies) -> None:
        super().__init__(file, protocol=5)
        self._bodies = bodies

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, BaseBackend):
            return ("backend", _service_of(obj), obj.account_id, obj.region_name)
        if isinstance(obj, BackendDict):
            return ("backends", obj.service_name)
        if isinstance(obj, BodyRef):
            return ("body", obj.name)
        return None

    def reducer_override(self, obj: Any) -> Any:
        make_lock = LOCKS.get(type(obj))
        if make_lock is not None:
            return make_lock, ()
        if isinstance(obj, types.FunctionType) and "<" in obj.__qualname__:
            cells = tuple(cell.cell_contents for cell in obj.__closure__ or ())
            made_of = (marshal.dumps(obj.__code__), obj.__module__, len(cells))
            return _make_function, made_of, (obj.__defaults__, obj.__kwdefaults__, cells), None, None, _fill_function
        if type(obj) is weakref.WeakValueDictionary:  # Lambda's functions by ARN; others hold them
            return weakref.WeakValueDictionary, (), dict(obj), None, None, _fill_weakly
        if isinstance(obj, dict) and type(obj).__module__.startswith("moto."):
            # moto's dictionaries need arguments to be made, or change what is put into them.
            contents = (getattr(obj, "default_factory", None), vars(obj), dict(_plain(obj).items(obj)))
            return _make_bare, (type(obj),), contents, None, None, _fill_dict
        if isinstance(obj, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
            pem = obj.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            return _load_private_key, (pem,)
        if type(obj).__name__ == "AWSManagedPolicy" and len(obj.versions) == 1:
            own = {name: value for name, value in vars(obj).items() if name != "versions"}
            return _managed_policy, (obj.name, obj.account_id, obj.partition), own
        if type(obj).__name__ == "FakeKey" and type(obj).__module__ == "moto.s3.models":
            return _make_bare, (type(obj),), self._key_state(obj), None, None, _fill_key
        return NotImplemented

    def _key_state(self, key: Any) -> dict[str, Any]:
        # Not its own __getstate__, which copies the body.
        state = {name: value for name, value in vars(key).items() if name not in ("_value_buffer", "lock")}
        if key.disposed:
            state["value"] = b""
        elif key.contentsize <= INLINE_BODY:
            state["value"] = key.value
        else:
            state["value"] = self._bodies.ref(key)
            state["holdfast_body"] = state["value"].name
        return state


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, bodies: Bodies) -> None:
        super().__init__(file)
        self._bodies = bodies

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name)
        return self._fill_key if found is _fill_key else found

    def persistent_load(self, pid: Any) -> Any:
        match pid:
            case ("backend", service, account, region):
                return moto.backends.get_backend(service)[account][region]
            case ("backends", service):
                return moto.backends.get_backend(service)
            case ("body", name):
                return self._bodies.read(name)
        raise pickle.UnpicklingError(f"unknown reference {pid!r}")

    def _fill_key(self, key: Any, state: dict[str, Any]) -> None:
        name = state.pop("holdfast_body", None)
        _fill_key(key, state)
        if name is not None:
            self._bodies.adopt(key, name)


def _load_private_key(pem: bytes) -> Any:
    return serialization.load_pem_private_key(pem, None)


@functools.cache
def _policies_of_aws() -> dict[str, dict[str, Any]]:
    from moto.iam.aws_managed_policies import aws_managed_policies_data

    return dict(json.loads(aws_managed_policies_data))


def _managed_policy(name: str, account: str, partition: str) -> Any:
    """Read a policy of AWS from moto: all of them are four megabytes that no account changes."""
    from moto.iam.models import AWSManagedPolicy

    return AWSManagedPolicy.from_data(name, account, partition, _policies_of_aws()[name])


def forget() -> None:
    """
    Drop all state of moto.

    ``BackendDict.reset`` recreates every backend first, which takes seconds; only backends with a `reset` of their own
    run it.
    """
    with backend_lock:
        for backends in BackendDict._instances:  # type: ignore[misc]
            for regions in backends.values():
                for backend in regions.values():
                    if type(backend).reset is not BaseBackend.reset:
                        backend.reset()
            backends.clear()
        BackendDict._instances.clear()  # type: ignore[misc]


def _make_bare(kind: Any) -> Any:
    return kind.__new__(kind)


def _fill_key(key: Any, state: dict[str, Any]) -> None:
    key.__setstate__(state)
    if key.disposed:
        key._value_buffer.close()


def _fill_dict(made: Any, contents: tuple[Any, dict[str, Any], dict[Any, Any]]) -> None:
    factory, attributes, items = contents
    if isinstance(made, defaultdict):
        made.default_factory = factory
    vars(made).update(attributes)
    _plain(made).update(made, items)


def _fill_weakly(made: Any, contents: dict[Any, Any]) -> None:
    made.update(contents)


def _plain(made: Any) -> Any:
    return OrderedDict if isinstance(made, OrderedDict) else dict


def _make_function(code: bytes, module: str, cells: int) -> types.FunctionType:
    namespace = vars(importlib.import_module(module))
    closure = tuple(types.CellType() for _ in range(cells))
    return types.FunctionType(marshal.loads(code), namespace, closure=closure)  # noqa: S302 - our own snapshot


def _fill_function(function: types.FunctionType, state: tuple[Any, Any, tuple[Any, ...]]) -> None:
    function.__defaults__, function.__kwdefaults__, contents = state
    for cell, content in zip(function.__closure__ or (), contents, strict=True):
        cell.cell_contents = content


def _service_of(backend: BaseBackend) -> str:
    package = type(backend).__module__.split(".")[1]
    return {"awslambda": "lambda"}.get(package, package)
