"""Deployments from CloudFormation templates: conditions to scenarios, findings to lines."""

from holdfast.validation.from_template.conditions import Conditions
from holdfast.validation.from_template.per_cluster import deployments, deployments_in_app
from holdfast.validation.from_template.report import Report, check_template, findings_in_app
from holdfast.validation.from_template.scenario import MOST, Scenario, scenarios

__all__ = [
    "MOST",
    "Conditions",
    "Report",
    "Scenario",
    "check_template",
    "deployments",
    "deployments_in_app",
    "findings_in_app",
    "scenarios",
]
