from typing import Annotated, Literal

from holdfast.catalog import Property
from holdfast.config.models import fields
from holdfast.config.models.base import Model

RetentionDays = Literal[
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653
]


class Grafana(Model):
    """A Managed Grafana workspace beside Managed Prometheus."""

    authentication: Annotated[
        Literal["AWS_SSO", "SAML"], Property("AWS::Grafana::Workspace", "AuthenticationProviders")
    ] = "AWS_SSO"
    """How people sign in: IAM Identity Center, or SAML. Default: AWS_SSO"""


class Observability(Model):
    """Logs, metrics, alarms and tools to look at them."""

    container_insights: bool = True
    """Whether CloudWatch Container Insights runs in the Kubernetes cluster, on EKS. Default: true"""
    log_retention_days: RetentionDays = 365
    """How long logs and events are kept. Default: 365"""
    dashboard: bool = True
    """Whether a CloudWatch dashboard of the cluster is made. Default: true"""
    alarms: bool = True
    """Whether alarms are made: unhealthy nodes, failed replacements, a full file system; with a health agent also what
    it finds and an open breaker, with Container Insights no spare left and idle GPUs. Default: true"""
    alarm_emails: fields.EmailAddresses = ()
    """E-mail addresses for alarms and HyperPod's events. Default: none, they go to a topic without subscribers"""
    gpu_idle_minutes: fields.Minutes = 30
    """Idle GPUs raise an alarm after so many minutes, with Container Insights. Default: 30"""
    lustre_free_percent: Annotated[fields.PartOfWhole, Property("AWS::CloudWatch::Alarm", "Threshold")] = 10
    """Less free space than this raises an alarm. Default: 10"""
    prometheus: bool = False
    """Whether a Managed Prometheus workspace is made; with alert rules where HyperPod's observability add-on or, under
    Slurm, the health agent writes to it. Default: false"""
    grafana: Grafana | None = None
    """A Managed Grafana workspace; needs prometheus. Default: none"""
    mlflow: bool = False
    """Whether an MLflow app for tracking experiments is made. Default: false"""
    tensorboard: bool = False
    """Whether jobs get a folder for TensorBoard logs that is kept in the data bucket. Default: false"""
