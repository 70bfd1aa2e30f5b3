"""Access keys: of the home's owner, of the embedded AWS, or of a role's session."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from holdfast.localcloud.aws.common import ServiceError
from holdfast.localcloud.home import Keys


@dataclass(frozen=True, kw_only=True)
class CallerIdentity:
    """A caller by its key; the signature is checked elsewhere."""

    keys: Keys
    role: str = ""
    """ARN of the role, of a session. Default: the owner of the account, who may do everything."""
    session: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Of a session."""
    policy: str = ""
    """Of a session: the JSON of the policy that limits it. Default: the role's policies alone."""
    own: bool = False
    """True for the embedded AWS itself."""


class Callers:
    """Callers by their access keys. Keys of IAM users are unknown: users are not evaluated."""

    def __init__(self, *, owner: Keys, own: Keys) -> None:
        self._known = {
            owner.access_key_id: CallerIdentity(keys=owner),
            own.access_key_id: CallerIdentity(keys=own, own=True),
        }

    def find(self, key_id: str) -> CallerIdentity:
        """Return the caller with this key. Raise ServiceError if it is unknown or expired."""
        who = self._known.get(key_id) or _of_session(key_id)
        if who is None:
            raise ServiceError("InvalidClientTokenId", "The security token included in the request is invalid.", 403)
        return who


def remember_tags(key_id: str, tags: Mapping[str, str]) -> None:
    session = _session(key_id)
    if session is not None and tags:
        session.tags = dict(tags)


def _of_session(key_id: str) -> CallerIdentity | None:
    session = _session(key_id) if key_id.startswith("ASIA") else None
    return _still_good(session) if session is not None else None


def _session(key_id: str) -> Any:
    from moto.sts.models import sts_backends  # late: it takes a while to import

    for _, regions in list(sts_backends.items()):
        for backend in list(regions.values()):
            for session in reversed(list(backend.assumed_roles)):
                if session.access_key_id == key_id:
                    return session
    return None


def _still_good(session: Any) -> CallerIdentity:
    expiration: datetime = session.expiration
    if expiration.replace(tzinfo=UTC) <= datetime.now(UTC):
        raise ServiceError("ExpiredToken", "The security token included in the request is expired", 403)
    keys = Keys(
        access_key_id=session.access_key_id,
        secret_access_key=session.secret_access_key,
        session_token=session.session_token,
    )
    return CallerIdentity(
        keys=keys,
        role=session.role_arn,
        session=session.session_name,
        tags=getattr(session, "tags", {}),
        policy=session.policy or "",
    )
