"""
Deployment from an environment file, and all faults of the file. With ``pages``, the only importer of holdfast.config.
"""

from holdfast.validation.from_environment.report import Facts, check, deployment_in, load_checked, resources_in

__all__ = ["Facts", "check", "deployment_in", "load_checked", "resources_in"]
