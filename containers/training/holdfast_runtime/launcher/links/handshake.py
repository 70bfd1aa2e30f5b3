"""
Handshake of two launchers, from both sides.

Until the proof, lines are short, waits end, and nothing that the other side sends changes anything here.
"""

import asyncio
import hmac
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import replace

from holdfast_runtime.control import MessageError
from holdfast_runtime.launcher.links.calls import Calls
from holdfast_runtime.launcher.links.known_launchers import KnownLaunchers
from holdfast_runtime.launcher.links.link import Link
from holdfast_runtime.launcher.links.peers import Address
from holdfast_runtime.launcher.links.seal import SealedLine
from holdfast_runtime.launcher.links.wire import HANDSHAKE, Challenge, Hello, Refusal, Refused

HANDSHAKE_BYTES = 1 << 20
"""Longest line before a proof of the token; it names all launchers of the run."""
MOST_STRANGERS = 32
"""Reports; a program that reaches the port could fill the journal otherwise."""

ANOTHER: dict[Refusal, str] = {"token": "its run token differs", "run": "its run name differs"}
REMEDY = "all launchers of a run need the same HOLDFAST_TOKEN and --rdzv-id"


class Proofs:
    """Proofs of both sides, each for one role, one pair of nonces and one message."""

    def __init__(self, *, run_id: str, token: str) -> None:
        self._run_id = run_id
        self._key = hmac.digest(token.encode(), f"holdfast run {run_id}".encode(), "sha256")

    def call(self, hello: Hello, *, challenge: str) -> Hello:
        return replace(hello, proof=self._of("call", (challenge,), hello))

    def answer(self, hello: Hello, *, challenge: str, call: Hello) -> Hello:
        return replace(hello, proof=self._of("answer", (challenge, call.nonce), hello))

    def refusal(self, refused: Refused, *, challenge: str, call: Hello) -> Refused:
        return replace(refused, proof=self._of("refusal", (challenge, call.nonce), refused))

    def is_call(self, hello: Hello, *, challenge: str) -> bool:
        return hmac.compare_digest(hello.proof, self._of("call", (challenge,), hello))

    def is_answer(self, reply: Hello | Refused, *, challenge: str, call: Hello) -> bool:
        role = "answer" if isinstance(reply, Hello) else "refusal"
        return hmac.compare_digest(reply.proof, self._of(role, (challenge, call.nonce), reply))

    def key(self, *, challenge: str, call: Hello) -> bytes:
        return hmac.digest(self._key, f"key {challenge} {call.nonce}".encode(), "sha256")

    def _of(self, role: str, nonces: tuple[str, ...], message: Hello | Refused) -> str:
        body = HANDSHAKE.encode(replace(message, proof=""))
        return hmac.new(self._key, b" ".join([role.encode(), *map(str.encode, nonces), body]), "sha256").hexdigest()


class Handshake:
    """
    Of one launcher.

    Args:
        replace: This launcher needs that incarnation, if it has a lower one.
        stranger: Told once of each who does not know the token, or says that this launcher does not.
    """

    def __init__(
        self,
        *,
        proofs: Proofs,
        others: KnownLaunchers,
        calls: Calls,
        hello: Callable[[], Hello],
        serve: Callable[[Link, asyncio.StreamReader], Awaitable[None]],
        replace: Callable[[int], None],
        stranger: Callable[[str], None],
        patience_s: Callable[[], float],
    ) -> None:
        self.strangers: list[str] = []
        self._proofs = proofs
        self._others = others
        self._calls = calls
        self._hello = hello
        self._serve = serve
        self._replace = replace
        self._on_stranger = stranger
        self._patience_s = patience_s

    async def call(self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """
        On a connection that this launcher has made, to its end.

        Raises:
            OSError, asyncio.TimeoutError, asyncio.IncompleteReadError, MessageError: there is no launcher there.
        """
        challenge = HANDSHAKE.decode(await self._line(reader))
        if not isinstance(challenge, Challenge):
            raise MessageError("the other side does not begin with a challenge")
        own = self._proofs.call(replace(self._hello(), call=self._calls.next_number()), challenge=challenge.nonce)
        writer.write(HANDSHAKE.encode(own) + b"\n")
        answer = HANDSHAKE.decode(await self._line(reader))
        if isinstance(answer, Challenge) or not self._proofs.is_answer(answer, challenge=challenge.nonce, call=own):
            self._stranger(at_the_other_end(answer, address))
        elif isinstance(answer, Refused):
            self._refused(answer, address)
        elif answer.run_id == own.run_id and self._accepts(answer, called_as=own):
            self._calls.answered(address, at=(answer.host, answer.port))
            sealed = SealedLine(self._proofs.key(challenge=challenge.nonce, call=own), calling=True)
            await self._serve(Link(peer=answer, writer=writer, sealed=sealed, call=own.call), reader)

    async def admit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """On a connection that somebody else has made, to its end. Raises what ``call`` does."""
        challenge = secrets.token_hex(16)
        writer.write(HANDSHAKE.encode(Challenge(nonce=challenge)) + b"\n")
        caller = HANDSHAKE.decode(await self._line(reader))
        if not isinstance(caller, Hello):
            raise MessageError("the caller does not say hello")
        refusal = self._admission(caller, challenge=challenge, host=str(writer.get_extra_info("peername")[0]))
        if refusal is not None:
            writer.write(HANDSHAKE.encode(refusal) + b"\n")
            await writer.drain()
            return
        own = self._proofs.answer(self._hello(), challenge=challenge, call=caller)
        writer.write(HANDSHAKE.encode(own) + b"\n")
        sealed = SealedLine(self._proofs.key(challenge=challenge, call=caller), calling=False)
        await self._serve(Link(peer=caller, writer=writer, sealed=sealed, call=caller.call), reader)

    def _admission(self, caller: Hello, *, challenge: str, host: str) -> Refused | None:
        me = self._others.me
        if caller.run_id != me.run_id or not self._proofs.is_call(caller, challenge=challenge):
            code: Refusal = "run" if caller.run_id != me.run_id else "token"
            self._stranger(f"refused a launcher at {host}: {ANOTHER[code]}; {REMEDY}")
            return Refused(code, ANOTHER[code])
        self._learn(caller)
        refusal = self._others.objection(caller)
        if refusal is None and caller.node < me.node:
            self._calls.dial((caller.host, caller.port))
            refusal = Refused("direction", "the higher node calls")
        return None if refusal is None else self._proofs.refusal(refusal, challenge=challenge, call=caller)

    def _accepts(self, answer: Hello, *, called_as: Hello) -> bool:
        self._learn(answer)
        return self._others.is_now(called_as) and self._others.objection(answer) is None

    def _refused(self, answer: Refused, address: Address) -> None:
        if answer.code == "itself":
            self._calls.own.add(address)
        else:
            self._replace(answer.incarnation)

    def _learn(self, other: Hello) -> None:
        self._replace(self._others.learn(other))

    def _stranger(self, text: str) -> None:
        if text not in self.strangers and len(self.strangers) < MOST_STRANGERS:
            self.strangers.append(text)
            self._on_stranger(text)

    async def _line(self, reader: asyncio.StreamReader) -> bytes:
        line = await asyncio.wait_for(reader.readline(), self._patience_s())
        if not line.endswith(b"\n"):
            raise asyncio.IncompleteReadError(line, None)
        return line


def at_the_other_end(answer: Challenge | Hello | Refused, address: Address) -> str:
    where = f"{address[0]} port {address[1]}"
    if isinstance(answer, Refused) and answer.code in ANOTHER:
        return f"refused by the launcher at {where}: {ANOTHER[answer.code]}; {REMEDY}"
    return f"the program at {where} does not have the token of this run; {REMEDY}"
