"""What each side of a handshake has to show. A proof is good for one role, one pair of nonces and one message only."""

import hmac
from dataclasses import replace

from holdfast_runtime.launcher.links.wire import HANDSHAKE, Hello, Refused


class Proofs:
    """Of one run."""

    def __init__(self, *, run_id: str, token: str) -> None:
        self._run_id = run_id
        self._key = hmac.digest(token.encode(), f"holdfast run {run_id}".encode(), "sha256")

    def call(self, hello: Hello, *, challenge: str) -> Hello:
        """The caller's greeting with its proof."""
        return replace(hello, proof=self._of("call", (challenge,), hello))

    def answer(self, hello: Hello, *, challenge: str, call: Hello) -> Hello:
        """The greeting of who was called, with its proof."""
        return replace(hello, proof=self._of("answer", (challenge, call.nonce), hello))

    def refusal(self, refused: Refused, *, challenge: str, call: Hello) -> Refused:
        """A refusal that the caller is to act on."""
        return replace(refused, proof=self._of("refusal", (challenge, call.nonce), refused))

    def is_call(self, hello: Hello, *, challenge: str) -> bool:
        return hmac.compare_digest(hello.proof, self._of("call", (challenge,), hello))

    def is_answer(self, said: Hello | Refused, *, challenge: str, call: Hello) -> bool:
        """Whether a greeting, or a refusal, comes from who knows the token."""
        role = "answer" if isinstance(said, Hello) else "refusal"
        return hmac.compare_digest(said.proof, self._of(role, (challenge, call.nonce), said))

    def key(self, *, challenge: str, call: Hello) -> bytes:
        """For what follows on the connection."""
        return hmac.digest(self._key, f"key {challenge} {call.nonce}".encode(), "sha256")

    def _of(self, role: str, nonces: tuple[str, ...], message: Hello | Refused) -> str:
        body = HANDSHAKE.encode(replace(message, proof=""))
        return hmac.new(self._key, b" ".join([role.encode(), *map(str.encode, nonces), body]), "sha256").hexdigest()
