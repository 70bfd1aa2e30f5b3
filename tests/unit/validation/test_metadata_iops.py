"""The least metadata IOPS of a Lustre file system, by its capacity."""

from pathlib import Path

import pytest

from holdfast.catalog import least_metadata_iops
from holdfast.validation.from_environment import load_checked

FILE = """name: iops
account: "111122223333"
region: us-west-2
network: {{cidr: 10.0.0.0/16, availability_zone: us-west-2a}}
cluster:
  instance_groups:
    - {{name: head, instance_type: ml.m5.2xlarge, instance_count: 1, slurm: {{node_type: Controller}}}}
    - {{name: workers, instance_type: ml.g5.8xlarge, instance_count: 2, slurm: {{node_type: Compute, partition: dev}}}}
slurm: {{}}
storage: {{lustre: {{capacity_gib: {capacity}, throughput_mbps_per_tib: 250, metadata_iops: {iops}}}}}
"""


@pytest.mark.parametrize(
    ("capacity_gib", "iops"),
    [(1200, 1500), (2400, 3000), (4800, 6000), (9600, 6000), (12000, 12000), (45600, 12000), (48000, 24000),
     (72000, 36000)],
)  # fmt: skip
def test_a_capacity_has_the_metadata_iops_of_the_user_guides_table(capacity_gib: int, iops: int) -> None:
    assert least_metadata_iops(capacity_gib) == iops


@pytest.mark.parametrize(
    ("capacity", "iops", "words"),
    [
        (2400, 1500, "got 1500 with 2400 GiB; allowed: at least 3000; write 3000"),
        (48000, 12000, "got 12000 with 48000 GiB; allowed: at least 24000; write 24000"),
        (2400, 3000, ""),
        (1200, 1500, ""),
    ],
)
def test_a_file_with_fewer_than_its_capacity_needs_is_found_without_an_account(
    capacity: int, iops: int, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "iops.yaml"
    file.write_text(FILE.format(capacity=capacity, iops=iops))
    _, report = load_checked(file, errors_only=True)
    told = [f"{one.message}; {one.fix}" for one in report.findings]
    assert told == ([words] if words else [])
