"""
Services of a file each: Prometheus and Grafana, and the operations that moto lacks of CloudTrail, CloudWatch, EC2,
EventBridge and Logs. All else of those is moto's.
"""

from holdfast.localcloud.aws.small.cloudtrail import CloudTrail
from holdfast.localcloud.aws.small.cloudwatch import CloudWatch
from holdfast.localcloud.aws.small.ec2 import Gateways
from holdfast.localcloud.aws.small.eventbridge import Events
from holdfast.localcloud.aws.small.grafana import Grafana
from holdfast.localcloud.aws.small.logs import LogKeys
from holdfast.localcloud.aws.small.prometheus import Amp

__all__ = ["Amp", "CloudTrail", "CloudWatch", "Events", "Gateways", "Grafana", "LogKeys"]
