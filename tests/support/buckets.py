"""Buckets in any region: S3 refuses us-east-1 as a location constraint (API reference, CreateBucket)."""

from typing import Any


def make_bucket(s3: Any, name: str, *, region: str) -> None:
    place = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    s3.create_bucket(Bucket=name, **place)
