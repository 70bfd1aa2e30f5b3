"""The product with environments under EKS, and the archives of charts that they name."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from distributions import ROOT

BURN_IN_S = 5
OF_A_TEAM = (
    "image_id", "training_plan_arn", "volume_kms_key", "root_volume_kms_key", "scheduled_update", "auto_patch",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class KubernetesProduct:
    """The command line of a product, and environments under EKS for it."""

    product: Any
    charts: Path | None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.product, name)

    def kubernetes_environment(
        self, name: str = "local-eks", *, counts: dict[str, int] | None = None, **changes: Any
    ) -> Path:
        """
        An environment of the repository, in the embedded account.

        Args:
            counts: Instance group -> instances, without spares. Default: as the file says.
            changes: Top-level settings that are replaced.

        Nodes are tried out as long as local ones, since what is there of them are two processors.
        """
        text = (ROOT / "environments" / f"{name}.yaml").read_text()
        document = yaml.safe_load(text.replace("111122223333", "123456789012"))
        document["cloud"] = "embedded"
        groups = document["cluster"]["instance_groups"]
        # A fresh account has neither networks of a team's own, nor images, keys, plans and alarms.
        document["cluster"]["instance_groups"] = [group for group in groups if "override_vpc" not in group]
        for group in document["cluster"]["instance_groups"]:
            for setting in OF_A_TEAM:
                group.pop(setting, None)
            if counts is not None and group["name"] in counts:
                group["instance_count"] = counts[group["name"]]
                group.pop("spare_count", None)
                group.pop("min_instance_count", None)
        if document.get("health"):
            document["health"]["burn_in_seconds"] = BURN_IN_S
        document.update(changes)
        document["eks"].pop("chart_archives", None)
        if self.charts is not None:
            shutil.copytree(self.charts, self.work / "charts", dirs_exist_ok=True)
            document["eks"]["chart_archives"] = "charts"
        shutil.copytree(ROOT / "environments" / "scripts", self.work / "scripts", dirs_exist_ok=True)
        path: Path = self.work / f"{name}.yaml"
        path.write_text(yaml.safe_dump(document))
        return path
