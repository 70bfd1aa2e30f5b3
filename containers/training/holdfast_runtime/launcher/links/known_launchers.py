"""
Launchers that this one has met, and the incarnation that counts. Pure.

Of two launchers of one node the one of the higher incarnation counts. Of two with the same incarnation neither does:
each restarts with a higher one.
"""

import secrets
from dataclasses import dataclass, field, replace

from holdfast_runtime.launcher.links.wire import Hello, Refused, identity_of


def _new_uid() -> str:
    return secrets.token_hex(6)


@dataclass(frozen=True, kw_only=True)
class Identity:
    """This launcher, as others know it."""

    node: int
    run_id: str
    token: str = field(repr=False)
    uid: str = field(default_factory=_new_uid)


class KnownLaunchers:
    def __init__(self, me: Identity) -> None:
        self.me = me
        self.incarnation = 0
        self._met: dict[int, tuple[str, int]] = {}
        """Uid and newest incarnation of the launchers that had a link with this one or with one that reported it."""

    @property
    def identity(self) -> int:
        return identity_of(self.me.uid)

    def hello(self, *, host: str, port: int) -> Hello:
        return Hello(
            node=self.me.node,
            incarnation=self.incarnation,
            uid=self.me.uid,
            run_id=self.me.run_id,
            host=host,
            port=port,
            met=tuple((node, *last) for node, last in self._met.items()),
            nonce=secrets.token_hex(16),
        )

    def restart(self, incarnation: int) -> None:
        self.incarnation = incarnation
        self.me = replace(self.me, uid=_new_uid())

    def note(self, node: int, uid: str, incarnation: int) -> None:
        known, newest = self._met.get(node, (uid, -1))
        if incarnation >= newest:
            self._met[node] = (uid if incarnation > newest or uid == known else "", incarnation)

    def learn(self, other: Hello) -> int:
        """
        Note the launchers that another one has met.

        Returns:
            The incarnation that this launcher needs, as there was another one in its place; 0 where there was none.
        """
        needed = 0
        for node, uid, incarnation in other.met:
            if node != self.me.node:
                self.note(node, uid, incarnation)
            elif uid != self.me.uid:
                needed = incarnation + 1
        return needed

    def objection(self, other: Hello) -> Refused | None:
        if other.node == self.me.node:
            if other.uid == self.me.uid:
                return Refused("itself", "this is you")
            return Refused("taken", f"node {other.node} is here", incarnation=0)
        uid, incarnation = self._met.get(other.node, (other.uid, -1))
        if uid != other.uid and other.incarnation <= incarnation:
            return Refused("replaced", f"node {other.node} was replaced", incarnation + 1)
        return None

    def is_now(self, hello: Hello) -> bool:
        return (hello.uid, hello.incarnation) == (self.me.uid, self.incarnation)
