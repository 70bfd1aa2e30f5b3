"""
HyperPod's failure messages, in AWS's words. Pure.

Sources: SageMaker developer guide, "SageMaker HyperPod cluster management", "Lifecycle script failure messages" (the
first), awsome-distributed-ai issues 188 and 632 (the second, for missing scripts), "SageMaker HyperPod cluster events
reference" (events). AWS's typographic quotes are kept.
"""

from holdfast.localcloud.hyperpod.model.clusters import Cluster, Instance

FAQ = "https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-faq-slurm.html#hyperpod-faqs-q1"
LONGEST = 2048
"""Characters of a FailureMessage (API)."""


def script_failed(cluster: Cluster, instance: Instance) -> str:
    return (
        "Lifecycle scripts did not run successfully. To view lifecycle script logs, visit log group "
        f"\u2018/aws/sagemaker/Clusters/{cluster.name}/{cluster.cluster_id}' and log stream "
        f"\u2018LifecycleConfig/{instance.group}/{instance.instance_id}\u2019. If you cannot find corresponding "
        "lifecycle script logs in CloudWatch, please make sure you follow one of the options here: "
        f"{FAQ}.\u201d"
    )


def script_missing() -> str:
    return (
        "Lifecycle scripts did not run successfully. Ensure the scripts exist in provided S3 path, are accessible, and "
        "run without errors. Please see CloudWatch logs for lifecycle script execution details."
    )


def provisioning_failed(cluster: Cluster, instance: Instance) -> str:
    return f"Instance creation {instance.instance_id} in {_where(cluster, instance)} failed"


def completed(cluster: Cluster, instance: Instance, *, operation: str) -> str:
    """Event of a successful operation: creation, replacement, reboot, deletion."""
    return f"Instance {operation} {instance.instance_id} in {_where(cluster, instance)} completed successfully"


def checking(cluster: Cluster, instance: Instance, *, outcome: str) -> str:
    """Event of a deep health check: started, completed successfully or failed. Assumed, by analogy."""
    return f"Instance deep health check {instance.instance_id} in {_where(cluster, instance)} {outcome}"


def script_event(cluster: Cluster, instance: Instance) -> str:
    """Event of a failed lifecycle script; the text after "log group" is assumed."""
    return (
        f"Instance lifecycle script execution for EC2 Instance {instance.instance_id} has Failed. To view lifecycle "
        f"script logs, visit log group /aws/sagemaker/Clusters/{cluster.name}/{cluster.cluster_id} and log stream "
        f"LifecycleConfig/{instance.group}/{instance.instance_id}"
    )


def replacing(cluster: Cluster, instance: Instance, *, new: str) -> str:
    return f"Instance {new} is starting as part of instance replacement in {_where(cluster, instance)}"


def rebooting(cluster: Cluster, instance: Instance) -> str:
    return f"Reboot of EC2 Instance {instance.instance_id} is currently in progress on {_where(cluster, instance)}"


def updating(cluster: Cluster, instance: Instance) -> str:
    """Event of a software update that has begun. Assumed, by analogy."""
    where = _where(cluster, instance)
    return f"Software update of EC2 Instance {instance.instance_id} is currently in progress on {where}"


def _where(cluster: Cluster, instance: Instance) -> str:
    return f"Cluster {cluster.name} and IG {instance.group}"


def cluster_failed(instance: Instance, *, reason: str) -> str:
    """FailureMessage of a creation or update: it names one instance, however many failed."""
    text = (
        f'Instance {instance.instance_id} failed to provision with the following error: "{reason}'
        f"{'' if reason.endswith(chr(0x201D)) else chr(34)} Note that multiple instances may be impacted."
    )
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


CONTROLLER_NOT_READY = (
    "Cluster creation failed: controller and login nodes did not become ready within the expected time"
)
"""An event under Slurm ("Slurm-specific events"); the same text in FailureMessage is assumed."""
