"""Questions about values that an environment file refuses."""

from typing import Any

from holdfast.config.reading import Document, parse
from holdfast.importing.draft.imported import Draft


def ask_about_values(imported: Draft) -> None:
    """Note values that no file may have, such as placeholder ids."""
    for problem in parse(Document(file="imported", data=imported.document))[1]:
        text = f"got {problem.given}; allowed: {problem.allowed}; {problem.fix}"
        imported.note(_by_name(problem.path, imported.document), text, decide=True)


def _by_name(path: str, document: Any) -> str:
    parts, value = [], document
    for part in path.split(".") if path else []:
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
            parts.append(value["name"] if isinstance(value, dict) and "name" in value else part)
        else:
            value = value.get(part) if isinstance(value, dict) else None
            parts.append(part)
    return ".".join(parts)
