"""What was deployed before: of each shipped environment's template, what a later template must not change.

``python tests/support/deployed.py COMMIT FOLDER`` prints the file from the snapshots of a commit that lie in a folder.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from registry_schemas import create_only

CONTENT_HASH = re.compile(
    r"[0-9a-f]{64}|(?<=lifecycle/)[0-9a-f]{16}|(?<=hyperpod/)[0-9a-f]{16}|[0-9a-f]{16}(?=\.zip)"
    r"|(?<=cr-owned:lifecycle/)\w+|(?<=cr-owned:hyperpod/)\w+"
)
METADATA_KEY = "Holdfast::Environment"


def scrub(node: Any) -> Any:
    """Without content hashes, so that a changed script changes nothing."""
    if isinstance(node, dict):
        return {scrub(key): scrub(value) for key, value in node.items()}
    if isinstance(node, list):
        return [scrub(item) for item in node]
    return CONTENT_HASH.sub("HASH", node) if isinstance(node, str) else node


def identities(template: Any) -> dict[str, list[Any]]:
    """By logical id: the type, and the properties whose change replaces the resource."""
    return {
        name: [resource["Type"], dict(create_only(resource["Type"], scrub(resource.get("Properties", {}))))]
        for name, resource in sorted(template["Resources"].items())
    }


def main() -> None:
    """Print the file."""
    commit, folder = sys.argv[1], Path(sys.argv[2])
    lines = [f'{{"commit": {json.dumps(commit)}, "environments": {{']
    paths = sorted(folder.glob("*was_reviewed*.json"))
    for path in paths:
        name = path.stem.partition("[")[2].removesuffix("]")
        template = json.loads(path.read_text())
        lines.append(f'{json.dumps(name)}: {{"metadata": {json.dumps(template["Metadata"])}, "resources": {{')
        found = list(identities(template).items())
        lines += [
            f"  {json.dumps(key)}: {json.dumps(value)}" + ("," if number < len(found) else "")
            for number, (key, value) in enumerate(found, start=1)
        ]
        lines.append("}}" + ("," if path != paths[-1] else ""))
    print("\n".join([*lines, "}}"]))


if __name__ == "__main__":
    main()
