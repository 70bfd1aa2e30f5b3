"""Jobs of Slurm as the command line shows them."""

import json
import time
from typing import Any


class SubmittedJobs:
    """Those of one product."""

    ends_within_s = 240.0

    def __init__(self, product: Any) -> None:
        self.product = product

    def rows(self, job: str) -> list[dict[str, Any]]:
        """What ``holdfast jobs`` has of it; nothing where it does not know it yet."""
        shown = self.product.run("jobs", job, "--json", check=False)
        found: list[dict[str, Any]] = json.loads(shown.stdout) if shown.returncode == 0 else []
        return found

    def ended(self, job: str) -> list[dict[str, Any]]:
        """Its tasks, once all of them are over."""
        deadline = time.monotonic() + self.ends_within_s
        while True:
            found = self.rows(job)
            if found and all(one["ended"] and one["state"] not in ("PENDING", "REQUEUED") for one in found):
                return found
            assert time.monotonic() < deadline, f"job {job} did not end: {found}\n{self.output_so_far(job)}"
            time.sleep(0.5)

    def output(self, job: str) -> list[str]:
        """Its lines."""
        return list(self.product.run("logs", "--job", job).stdout.splitlines())

    def output_so_far(self, job: str) -> str:
        """Also of a job that waits for its nodes."""
        return str(self.product.run("logs", "--job", job, check=False).stdout)


def not_printed(lines: tuple[str, ...], output: list[str]) -> list[str]:
    """Those of the lines for which there is no line of the output of their own."""
    left, missing = list(output), []
    for line in lines:
        found = next((one for one in left if one == line), None) or next((one for one in left if line in one), None)
        if found is None:
            missing.append(line)
        else:
            left.remove(found)
    return missing
