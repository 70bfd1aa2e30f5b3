"""
The Lambda function that installs Helm charts into an EKS cluster. Standard library and boto3 only; no CDK in here.

A chart is a folder of a Git repository at one commit, and is installed only when the digest of its files is the one
that the template names. ``python -m holdfast_constructs.helm_installer`` computes that digest.
"""

from ._archive import tree_sha256
from ._nodes import RESOURCE_TYPE as NODES_RESOURCE_TYPE

__all__ = ["NODES_RESOURCE_TYPE", "tree_sha256"]
