"""
From an environment file to a deployment, and everything that is wrong with the file. The only room, with pages above
it, that knows holdfast.config.
"""

from holdfast.validation.from_environment.report import Facts, Report, check, deployment_in, findings_for, load_checked

__all__ = ["Facts", "Report", "check", "deployment_in", "findings_for", "load_checked"]
