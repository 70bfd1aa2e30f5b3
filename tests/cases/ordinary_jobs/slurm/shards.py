"""Shards of tokens, and a list of them."""

import json
import sys
from pathlib import Path

out = Path(sys.argv[1])
names = [f"shard-{number}.bin" for number in range(3)]
for name in names:
    (out / name).write_bytes(bytes(range(256)) * 4096)
(out / "scratch.tmp").write_text("not for S3")
(out / "manifest.json").write_text("\n".join(json.dumps({"name": name}) for name in names) + "\n")
