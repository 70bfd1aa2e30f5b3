"""
Put tokens for the recipes into a cluster's data bucket: the source text of a package of this Python's library.

    python prepare.py --bucket NAME        # s3://NAME/data/text.tokens, which nodes see as /fsx/data/text.tokens
"""

import argparse
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

KEY = "data/text.tokens"
PACKAGE = "asyncio"
"""Half a million characters: a rehearsal trains for a minute."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[1])
    parser.add_argument("--bucket", required=True, help="S3 bucket to upload to")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tokens = Path(folder) / "text.tokens"
        build = [sys.executable, "-m", "holdfast_runtime.data", "build", "--pattern", "*.py", "-o", str(tokens)]
        subprocess.run([*build, str(Path(sysconfig.get_path("stdlib"), PACKAGE))], check=True)
        import boto3  # only here: building tokens needs the runtime alone

        boto3.client("s3").upload_file(str(tokens), arguments.bucket, KEY)
    print(f"uploaded to s3://{arguments.bucket}/{KEY}")


if __name__ == "__main__":
    main()
