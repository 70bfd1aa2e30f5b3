"""Command line of systemctl: verb, arguments, flags, values; systemctl(1)."""

from __future__ import annotations

from .manager import JobError

_IGNORED = (
    "--no-pager", "--system", "-l", "--full", "--no-wall", "--no-ask-password", "--force", "-f", "--plain", "--no-warn",
    "--no-reload", "-a",
)  # fmt: skip
_WITH_VALUE = {
    "-p": "property", "--property": "property", "-t": "type", "--type": "type", "-n": "lines", "--lines": "lines",
    "-s": "signal", "--signal": "signal", "--kill-who": "whom", "--kill-whom": "whom", "--state": "state",
    "-o": "output", "--output": "output", "--job-mode": "job-mode", "-P": "only",
}  # fmt: skip
_FLAGS = {
    "--quiet": "quiet", "-q": "quiet", "--no-block": "no-block", "--now": "now", "--all": "all", "--value": "value",
    "--failed": "failed", "--no-legend": "no-legend", "--runtime": "runtime", "--wait": "wait",
}  # fmt: skip


class Options:
    """Parsed command line: verb, arguments, flags, values."""

    def __init__(self, argv: list[str]) -> None:
        self.flags: set[str] = set()
        self.values: dict[str, list[str]] = {}
        plain: list[str] = []
        rest = list(argv)
        while rest:
            word = rest.pop(0)
            name, separator, value = word.partition("=")
            if not word.startswith("-"):
                plain.append(word)
            elif name in _WITH_VALUE:
                if not separator and not rest:
                    raise JobError(f"systemctl: option {name} requires an argument")
                self.values.setdefault(_WITH_VALUE[name], []).append(value if separator else rest.pop(0))
            elif word[:2] in _WITH_VALUE and len(word) > 2 and not word.startswith("--"):
                self.values.setdefault(_WITH_VALUE[word[:2]], []).append(word[2:])
            elif word in _FLAGS:
                self.flags.add(_FLAGS[word])
            elif name == "--no-legend" or (name == "--legend" and value == "false"):
                self.flags.add("no-legend")
            elif word == "-a":
                self.flags.add("all")
            elif word not in _IGNORED:
                raise JobError(f"systemctl: unrecognized option '{word}' (not supported by holdfast's systemctl)")
        self.verb = plain[0] if plain else "list-units"
        self.arguments = plain[1:]

    def list(self, name: str) -> list[str]:
        return [word for value in self.values.get(name, []) for word in value.split(",") if word]
