"""SageMaker's MLflow apps. Records only: nothing serves the MLflow API."""

# ruff: noqa: N803 - arguments bear the names of the API members

import secrets
import threading
from typing import Any

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import Record, RecordStore, ServiceError, now, page, tag_dict
from holdfast.localcloud.aws.iam import Rights
from holdfast.localcloud.aws.sagemaker.records.governance import STATUS, described

DEFAULT_VERSION = "3.4"


def _missing(key: Any) -> ServiceError:
    return ServiceError("ResourceNotFound", f"The MLflow resource {key} does not exist.")


class Mlflow:
    def __init__(self, *, client: ClientFactory, account: str, region: str, lock: threading.RLock) -> None:
        self._account, self._region = account, region
        self.apps = RecordStore(_missing)
        self._client, self._lock = client, lock

    def create_mlflow_app(
        self, *, Name: str, Tags: list[dict[str, str]] | None = None, **settings: Any
    ) -> dict[str, Any]:
        self._check_artifacts(settings.get("RoleArn", ""), settings.get("ArtifactStoreUri", ""))
        with self._lock:
            if any(record.content["Name"] == Name for _, record in self.apps.items()):
                raise ServiceError("ConflictException", f"MLflow app {Name} already exists.")
            arn = f"arn:aws:sagemaker:{self._region}:{self._account}:mlflow-app/app-{secrets.token_hex(6).upper()}"
            moment = now()
            content = {
                "Arn": arn,
                "Name": Name,
                "MlflowVersion": DEFAULT_VERSION,
                "ModelRegistrationMode": "AutoModelRegistrationDisabled",
                "AccountDefaultStatus": "DISABLED",
                "CreationTime": moment,
                "LastModifiedTime": moment,
                **settings,
                "Tags": tag_dict(Tags),
            }
            self.apps.add(arn, content)
            return {"Arn": arn}

    def _check_artifacts(self, role: str, store: str) -> None:
        """
        Check that the role can write artifacts.

        Source: SageMaker developer guide, mlflow-create-tracking-server-iam. Time of the check and words are assumed.
        """
        rights = Rights(client=self._client, role=role, session="SageMaker", account=self._account)
        if not rights.trusts("sagemaker.amazonaws.com", **{"aws:SourceAccount": self._account}):
            raise ServiceError("ValidationException", f"The role {role} cannot be assumed by SageMaker.")
        bucket, _, prefix = store.removeprefix("s3://").partition("/")
        place = f"arn:aws:s3:::{bucket}"
        inside = f"{place}/{prefix.rstrip('/')}/artifact" if prefix.strip("/") else f"{place}/artifact"
        same = {"aws:ResourceAccount": self._account, "aws:PrincipalAccount": self._account}
        for action, resource in (("s3:ListBucket", place), ("s3:PutObject", inside), ("s3:GetObject", inside)):
            decision = rights.to(action, resource, {**same, "s3:prefix": prefix})
            if not decision.allowed:
                raise ServiceError(
                    "ValidationException", f"Unable to use the artifact store {store}. {decision.reason}"
                )

    def describe_mlflow_app(self, *, Arn: str) -> dict[str, Any]:
        with self._lock:
            return described(self.apps.get(Arn))

    def list_mlflow_apps(
        self, *, MaxResults: int | None = None, NextToken: str | None = None, **_: Any
    ) -> dict[str, Any]:
        with self._lock:
            found = [described(record) for record in self.apps.values()]
        shown, more = page(found, size=MaxResults, token=NextToken)
        return {"Summaries": shown, **more}

    def update_mlflow_app(self, *, Arn: str, **changes: Any) -> dict[str, Any]:
        with self._lock:
            _change(self.apps.get(Arn), changes)
            return {"Arn": Arn}

    def delete_mlflow_app(self, *, Arn: str) -> dict[str, Any]:
        with self._lock:
            self.apps.get(Arn).begin("DELETING")
            return {"Arn": Arn}


def _change(record: Record, changes: dict[str, Any]) -> None:
    if record.busy:
        raise ServiceError("ConflictException", f"The MLflow resource is {STATUS[record.doing]}.")
    record.content |= {**changes, "LastModifiedTime": now()}
    record.begin("UPDATING")
