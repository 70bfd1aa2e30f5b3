"""Unit files as text: sections, keys, lists reset by an empty value, specifiers. Pure; systemd.syntax(7)."""

from __future__ import annotations


class UnitError(Exception): ...


Sections = dict[str, dict[str, list[str]]]


def parse_into(sections: Sections, text: str) -> None:
    """Read a unit file, or a drop-in, over earlier content."""
    section = ""
    for line in _logical_lines(text):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
            sections.setdefault(section, {})
        elif section and "=" in line:
            key, _, value = line.partition("=")
            values = sections[section].setdefault(key.strip(), [])
            if value.strip():
                values.append(value.strip())
            else:
                values.clear()


def _logical_lines(text: str) -> list[str]:
    """Join continued lines by a space; skip comments inside."""
    found: list[str] = []
    pending = ""
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith(("#", ";")) or (not line and not pending):
            continue
        if line.endswith("\\"):
            pending += line[:-1] + " "
            continue
        found.append((pending + line).strip())
        pending = ""
    if pending.strip():
        found.append(pending.strip())
    return found


def words(value: str) -> list[str]:
    """Return the words of a list setting, unquoted: ``"a b" c`` gives two."""
    found: list[str] = []
    current, quote, inside = "", "", False
    characters = iter(value)
    for character in characters:
        if character == "\\":
            current, inside = current + _escape(next(characters, "")), True
        elif quote:
            if character == quote:
                quote = ""
            else:
                current += character
        elif character in "\"'":
            quote, inside = character, True
        elif character.isspace():
            if inside:
                found.append(current)
            current, inside = "", False
        else:
            current, inside = current + character, True
    if quote:
        raise UnitError(f"unbalanced quotes in: {value}")
    return [*found, current] if inside else found


def _escape(character: str) -> str:
    known = {"n": "\n", "t": "\t", "r": "\r", "s": " ", "\\": "\\", '"': '"', "'": "'", "a": "\a", "b": "\b"}
    return known.get(character, "\\" + character)


class Unit:
    def __init__(self, name: str, *, path: str = "", load_state: str = "not-found", host: str = "") -> None:
        self.name = name
        self.path = path
        """The unit file; empty where there is none."""
        self.load_state = load_state
        """systemd's states: loaded, not-found, masked or bad-setting."""
        self.host = host
        """The node's host name, for specifiers."""
        self.drop_ins: list[str] = []
        self.sections: Sections = {}

    @property
    def kind(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def prefix(self) -> str:
        return self.name.rpartition(".")[0].partition("@")[0]

    @property
    def instance(self) -> str:
        return self.name.rpartition(".")[0].partition("@")[2]

    def raw(self, section: str, key: str) -> list[str]:
        return self.sections.get(section, {}).get(key, [])

    def all(self, section: str, key: str) -> list[str]:
        return [self.resolve(value) for value in self.raw(section, key)]

    def one(self, section: str, key: str, default: str = "") -> str:
        """Return the last assignment, which counts for a single value."""
        values = self.raw(section, key)
        return self.resolve(values[-1]) if values else default

    def names(self, section: str, key: str) -> list[str]:
        """Return the words of all assignments, such as After= or Wants=."""
        return [word for value in self.all(section, key) for word in words(value)]

    def flag(self, section: str, key: str, *, default: bool = False) -> bool:
        value = self.one(section, key).lower()
        if value not in ("", "1", "yes", "true", "on", "0", "no", "false", "off"):
            raise UnitError(f"{self.name}: {key}= must be a boolean, got {value!r}")
        return default if not value else value in ("1", "yes", "true", "on")

    @property
    def type(self) -> str:
        return self.one("Service", "Type") or ("simple" if self.raw("Service", "ExecStart") else "oneshot")

    @property
    def description(self) -> str:
        return self.one("Unit", "Description") or self.name

    def resolve(self, value: str) -> str:
        """Replace specifiers; table in systemd.unit(5)."""
        if "%" not in value:
            return value
        bare = self.name.rpartition(".")[0]
        known = {
            "%": "%", "n": self.name, "N": bare, "p": self.prefix, "i": self.instance, "P": unescape(self.prefix),
            "I": unescape(self.instance), "t": "/run", "S": "/var/lib", "C": "/var/cache", "L": "/var/log",
            "E": "/etc", "T": "/tmp", "V": "/var/tmp", "h": "/root", "u": "root", "U": "0", "H": self.host,  # noqa: S108
            "l": self.host.partition(".")[0],
        }  # fmt: skip
        resolved, characters = "", iter(value)
        for character in characters:
            if character != "%":
                resolved += character
                continue
            letter = next(characters, "")
            if letter not in known:
                raise UnitError(f"{self.name}: failed to resolve unit specifiers in {value!r}")
            resolved += known[letter]
        return resolved


def unescape(name: str) -> str:
    """Return the path of an escaped name; systemd-escape(1) --unescape."""
    parts = name.replace("-", "/").split("\\x")
    return parts[0] + "".join(_hex(part) for part in parts[1:])


def _hex(part: str) -> str:
    try:
        return chr(int(part[:2], 16)) + part[2:]
    except ValueError:
        return "\\x" + part


def escape_path(path: str) -> str:
    """Return a path as a unit name; systemd-escape(1) --path."""
    trimmed = "/".join(part for part in path.split("/") if part)
    if not trimmed:
        return "-"
    plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:_."
    encoded = ""
    for number, character in enumerate(trimmed):
        if character == "/":
            encoded += "-"
        elif character in plain and not (character == "." and number == 0):
            encoded += character
        else:
            encoded += "".join(f"\\x{byte:02x}" for byte in character.encode())
    return encoded
