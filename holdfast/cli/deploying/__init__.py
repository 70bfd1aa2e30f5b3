"""Deployment: preflight checks, CDK as a child process, wait for nodes."""

from holdfast.cli.deploying.administrators import make_missing_roles
from holdfast.cli.deploying.app import BUILT_IN, WHEELS, app_folder, check_packages
from holdfast.cli.deploying.capacity import Capacity
from holdfast.cli.deploying.cdk import Cdk
from holdfast.cli.deploying.deployment import deploy, node_count, refuse_replacements, settle, taken_down_on
from holdfast.cli.deploying.monitoring import check_monitor, start_monitor
from holdfast.cli.deploying.node import find_cdk_cli, find_node, install_cdk_cli, npm_error, pinned_version
from holdfast.cli.deploying.preflight import check_machine, check_system, install_command, install_packages
from holdfast.cli.deploying.remarks import not_here
from holdfast.cli.deploying.stack_states import ROLLED_BACK, STUCK, after_failure, is_under_way, stuck
from holdfast.cli.deploying.stages import Stage

__all__ = [
    "BUILT_IN",
    "ROLLED_BACK",
    "STUCK",
    "WHEELS",
    "Capacity",
    "Cdk",
    "Stage",
    "after_failure",
    "app_folder",
    "check_machine",
    "check_monitor",
    "check_packages",
    "check_system",
    "deploy",
    "find_cdk_cli",
    "find_node",
    "install_cdk_cli",
    "install_command",
    "install_packages",
    "is_under_way",
    "make_missing_roles",
    "node_count",
    "not_here",
    "npm_error",
    "pinned_version",
    "refuse_replacements",
    "settle",
    "start_monitor",
    "stuck",
    "taken_down_on",
]
