"""Slurm as an environment asks for it, with its accounting database."""

from aws_cdk import aws_kms as kms
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from holdfast import config
from holdfast_constructs import AccountingDatabase, IHyperPodNetwork, SlurmAccountingDatabase, SlurmOrchestrator
from holdfast_stacks.foundations import removal_policy


def slurm(
    scope: Construct, environment: config.Environment, *, network: IHyperPodNetwork, key: kms.IKey | None
) -> SlurmOrchestrator:
    settings = environment.slurm or config.Slurm()
    return SlurmOrchestrator(
        config_strategy=settings.config_strategy,
        accounting_database=_accounting(scope, environment, settings.accounting, network=network, key=key),
    )


def _accounting(
    scope: Construct,
    environment: config.Environment,
    settings: config.Accounting | None,
    *,
    network: IHyperPodNetwork,
    key: kms.IKey | None,
) -> AccountingDatabase | None:
    if settings is None:
        return None
    if settings.endpoint is None or settings.secret_arn is None:
        database = SlurmAccountingDatabase(
            scope, "Accounting", network=network, encryption_key=key, removal_policy=removal_policy(environment.storage)
        )
        return database.accounting_database
    return AccountingDatabase(
        endpoint=settings.endpoint,
        port=settings.port,
        name=settings.database,
        secret=secretsmanager.Secret.from_secret_complete_arn(scope, "AccountingSecret", settings.secret_arn),
    )
