"""
YAML as CloudFormation reads it: version 1.1 with its own short tags, without aliases, merge keys and timestamps.

Built iteratively from events, so depth and aliases of a hostile text exhaust nothing. Source: CloudFormation user
guide, "CloudFormation template format" (unsupported YAML) and the reference of intrinsic functions (short tags).
"""

import functools
from typing import Any, Final

import yaml

from holdfast.validation.cloudformation import DEEPEST, Fault, LinedList, LinedMapping, Unreadable, twice
from holdfast.validation.template_files.json_text import not_a_mapping, too_deep
from holdfast.validation.template_files.parsed import Text

SHORT_TAGS: Final = frozenset(
    {
        "And",
        "Base64",
        "Cidr",
        "Contains",
        "EachMemberEquals",
        "EachMemberIn",
        "Equals",
        "FindInMap",
        "GetAZs",
        "GetAtt",
        "GetStackOutput",
        "If",
        "ImportValue",
        "Join",
        "Length",
        "Not",
        "Or",
        "RefAll",
        "Select",
        "Split",
        "Sub",
        "ToJsonString",
        "Transform",
        "ValueOf",
        "ValueOfAll",
    }
)
"""Those that stand for ``Fn::`` and their name; ``!Ref`` and ``!Condition`` stand for the bare word."""
_BARE = frozenset({"Ref", "Condition"})
_CORE = "tag:yaml.org,2002:"
_TEXTS = frozenset({"timestamp", "value", "merge"})
"""What YAML takes for something special when it stands alone, and CloudFormation for text."""
_MOST_FAULTS = 20
_LARGEST = 400_000
"""Values of a text with its aliases written out; a template of 1 MB has a tenth of that."""


def read_yaml(text: str) -> Text:
    """Read a YAML mapping; raises Unreadable."""
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Builder(loader(text)).read()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(str(part) for part in (error.context, error.problem) if part)
        raise _no_yaml(mark.line + 1 if mark else 1, what) from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position] if isinstance(error.position, int) else ""
        raise _no_yaml(before.count("\n") + 1, "a character that YAML does not allow") from None
    except yaml.YAMLError as error:
        raise _no_yaml(1, str(error)) from None


def _no_yaml(line: int, given: str) -> Unreadable:
    return Unreadable(
        line=line,
        given=given,
        allowed="a CloudFormation template in YAML or JSON",
        fix="correct the syntax in or above this line",
    )


class _Open:
    __slots__ = ("anchor", "container", "key", "size", "tag")

    def __init__(self, container: LinedMapping | LinedList, tag: str | None, anchor: str | None) -> None:
        self.container = container
        self.tag = tag
        self.anchor = anchor
        self.key: str | None = None
        self.size = 1


class _Builder:
    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[object, int]] = {}
        self._faults: list[Fault] = []
        self._aliases: list[int] = []
        self._root: object = None
        self._documents = 0

    def read(self) -> Text:
        try:
            while self._loader.check_event():
                self._event(self._loader.get_event())
        finally:
            self._loader.dispose()
        if self._documents == 0:
            raise _no_yaml(1, "an empty file")
        if not isinstance(self._root, LinedMapping):
            raise not_a_mapping("list" if isinstance(self._root, LinedList) else "single value")
        if self._aliases:
            self._faults.insert(0, _aliases(self._aliases))
        return Text(body=self._root, faults=tuple(self._faults[:_MOST_FAULTS]))

    def _event(self, event: Any) -> None:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event, line)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            mapping = isinstance(event, yaml.MappingStartEvent)
            if len(self._open) >= DEEPEST:
                raise too_deep(line)
            container = LinedMapping(line) if mapping else LinedList(line)
            self._open.append(_Open(container, event.tag, event.anchor))
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            done = self._open.pop()
            value = self._tagged(done.tag, done.container, done.container.line)
            if done.anchor:
                self._anchors[done.anchor] = (value, done.size)
            self._put(value, done.container.line, done.size)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(str(event.anchor), line)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise _no_yaml(line, "a second document")

    def _scalar(self, event: Any, line: int) -> None:
        holder = self._open[-1] if self._open else None
        if holder is not None and isinstance(holder.container, LinedMapping) and holder.key is None:
            self._key(holder, event.value, line)
            return
        if event.tag and not event.tag.startswith(_CORE):
            value = self._tagged(event.tag, event.value, line)
        elif event.tag:
            value = self._core(event.tag.removeprefix(_CORE), event.value, line)
        else:
            value = plain(event.value) if event.implicit[0] else event.value
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        self._put(value, line, 1)

    def _key(self, holder: _Open, key: str, line: int) -> None:
        container = holder.container
        assert isinstance(container, LinedMapping)
        if key == "<<":
            self._fault(line, key, given="a merge key (<<)", fix="write the merged keys out")
        elif key in container:
            self._faults.append(twice([*self._path(), key], line, container.lines[key]))
        container.lines[key] = line
        holder.key = key

    def _alias(self, anchor: str, line: int) -> None:
        self._aliases.append(line)
        holder = self._open[-1] if self._open else None
        if holder is not None and isinstance(holder.container, LinedMapping) and holder.key is None:
            self._key(holder, f"*{anchor}", line)
            return
        # An anchor that is still open leads to itself.
        value, size = self._anchors.get(anchor, ({"Fn::Alias": anchor}, 1))
        self._put(value, line, size)

    def _put(self, value: object, line: int, size: int) -> None:
        if not self._open:
            self._root = value
            return
        holder = self._open[-1]
        holder.size += size
        if holder.size > _LARGEST:
            raise _no_yaml(line, f"aliases that stand for more than {_LARGEST} values")
        if isinstance(holder.container, LinedList):
            holder.container.lines.append(line)
            holder.container.append(value)
        elif holder.key is None:
            self._fault(line, "", given="a key that is no text", fix="write the key as plain text")
            holder.key = f"(key in line {line})"
        else:
            if holder.key == "<<" and isinstance(value, LinedMapping):
                for key in value.keys() - holder.container.keys():
                    holder.container[key] = value[key]
                    holder.container.lines[key] = value.lines[key]
            else:
                holder.container[holder.key] = value
            holder.key = None

    def _tagged(self, tag: str | None, value: object, line: int) -> object:
        if tag is None or tag.startswith(_CORE):
            return value
        name = tag.removeprefix("!")
        if name in _BARE:
            return _function(name, value, line)
        if name == "GetAtt" and isinstance(value, str):
            first, _, rest = value.partition(".")
            return _function("Fn::GetAtt", [first, rest], line)
        if name not in SHORT_TAGS:
            allowed = ", ".join(f"!{each}" for each in sorted(_BARE | SHORT_TAGS))
            self._fault(line, "", given=f"the tag {tag}", allowed=allowed, fix="use a function of CloudFormation")
        return _function(f"Fn::{name}", value, line)

    def _core(self, kind: str, value: str, line: int) -> object:
        if kind in ("int", "float", "bool", "null"):
            return _typed(kind, value)
        if kind not in ("str", *_TEXTS):
            self._fault(line, "", given=f"the tag !!{kind}", fix="write a plain value")
        return value

    def _fault(
        self, line: int, key: str, *, given: str, fix: str, allowed: str = "the YAML that CloudFormation reads"
    ) -> None:
        path = [*self._path(), key] if key else self._path()
        self._faults.append(
            Fault(code="HF020", line=line, path=".".join(map(str, path)), given=given, allowed=allowed, fix=fix)
        )

    def _path(self) -> list[str | int]:
        return [
            len(each.container) if isinstance(each.container, LinedList) else str(each.key)
            for each in self._open
            if isinstance(each.container, LinedList) or each.key is not None
        ]


def _function(name: str, value: object, line: int) -> LinedMapping:
    mapping = LinedMapping(line)
    mapping[name] = value
    mapping.lines[name] = line
    return mapping


def _aliases(lines: list[int]) -> Fault:
    count = len(lines)
    return Fault(
        code="HF020",
        line=lines[0],
        given="an alias (*name)" if count == 1 else f"{count} aliases (*name), the first of them here",
        allowed="the YAML that CloudFormation reads",
        fix="write the values out",
    )


@functools.lru_cache(maxsize=4096)
def plain(text: str) -> object:
    """Type of a bare word in YAML 1.1: number, boolean, null or text."""
    tag = _RESOLVER.resolve(yaml.ScalarNode, text, (True, False)).removeprefix(_CORE)
    return text if tag == "str" or tag in _TEXTS else _typed(tag, text)


def _typed(kind: str, text: str) -> object:
    node = yaml.ScalarNode(f"{_CORE}{kind}", text)
    constructor: Any = _CONSTRUCTOR
    try:
        return getattr(constructor, f"construct_yaml_{kind}")(node)
    except (ValueError, ArithmeticError, LookupError, AttributeError):  # what looks like a number and is none
        return text


_RESOLVER: Any = yaml.resolver.Resolver()
_CONSTRUCTOR = yaml.constructor.SafeConstructor()
