"""Grafana, and operations that moto lacks of CloudTrail, EC2, EventBridge and Prometheus."""

from holdfast.localcloud.aws.small.cloudtrail import CloudTrail
from holdfast.localcloud.aws.small.ec2 import Gateways
from holdfast.localcloud.aws.small.eventbridge import Events
from holdfast.localcloud.aws.small.grafana import Grafana
from holdfast.localcloud.aws.small.prometheus import AlertManager

__all__ = ["AlertManager", "CloudTrail", "Events", "Gateways", "Grafana"]
