"""Places of launchers under controllers of Kubernetes: with the names, indices and variables that each of them sets."""

from typing import Any

import pytest
import yaml
from kubernetes_schemas import MINORS, complaints

from distributions import ROOT
from holdfast_runtime.launcher.settings import Options, parse_options

BYTELM = ROOT / "examples" / "bytelm"
INDEX = "JOB_COMPLETION_INDEX"
"""
kubernetes/kubernetes, pkg/controller/job/indexed_job_utils.go: ``completionIndexEnvName = "JOB_COMPLETION_INDEX"``;
pkg/controller/job/job_controller.go: ``template.Spec.Hostname = fmt.Sprintf("%s-%d", job.Name, completionIndex)``.
"""
OF_TRAINER = {
    "PET_NNODES": "5",
    "PET_NPROC_PER_NODE": "1",
    "PET_NODE_RANK": "2",
    "PET_MASTER_ADDR": "bytelm-node-0-0.bytelm",
    "PET_MASTER_PORT": "29500",
}
"""
kubeflow/trainer, pkg/runtime/framework/plugins/torch/torch.go: ``WithName(constants.TorchEnvNumNodes)`` and the others;
``WithValue(fmt.Sprintf("%s-%s-0-0.%s", trainJob.Name, constants.Node, trainJob.Name))``. Names in
pkg/constants/constants.go: ``TorchEnvNumNodes string = "PET_NNODES"``.
"""


def started(
    arguments: list[str], environment: dict[str, str], *, host: str, monkeypatch: pytest.MonkeyPatch
) -> Options:
    """A launcher of index 2 in a pod with that full host name."""
    monkeypatch.setattr("socket.getfqdn", lambda name="": host)
    given = {INDEX: "2", "HOLDFAST_TOKEN": "t", "HOLDFAST_SUBMISSION": "s", **environment}
    return parse_options([one.replace("$(HOLDFAST_SUBMISSION)", "s") for one in arguments], given)


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((BYTELM / name).read_text()))


def variables(container: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in container.get("env", ()) if "value" in one}


def hosts(options: Options) -> list[str]:
    return [host for host, _ in options.peers.known]


def test_an_indexed_job_names_its_pods_by_job_and_index(monkeypatch: pytest.MonkeyPatch) -> None:
    options = started(["--nnodes=5", "t.py"], {}, host="night-2.night.a.svc.cluster.local", monkeypatch=monkeypatch)
    assert options.node_rank == 2
    assert hosts(options) == [f"night-{index}.night.a.svc.cluster.local" for index in range(5)]


def test_a_jobset_names_them_by_its_job_below_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    kubernetes-sigs/jobset, pkg/controllers/jobset_controller.go:
    ``job.Spec.Template.Spec.Subdomain = GetSubdomain(js)``, the JobSet's name; its Jobs are
    ``<jobset>-<replicatedJob>-<index>``.
    """
    (jobset,) = documents("bytelm-jobset.yaml")
    pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    host = "bytelm-node-0-2.bytelm.default.svc.cluster.local"
    container = pod["containers"][0]
    options = started(container["args"], variables(container), host=host, monkeypatch=monkeypatch)
    assert (options.nodes, options.spare_nodes, options.node_rank, options.on_sigterm) == (5, 1, 2, "leave")
    assert hosts(options)[4] == "bytelm-node-0-4.bytelm.default.svc.cluster.local"


def test_a_trainjob_sets_torchruns_variables_and_the_host_names_give_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime, job = documents("bytelm-trainjob.yaml")
    template = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]
    (container,) = template["spec"]["template"]["spec"]["containers"]
    trainer = job["spec"]["trainer"]
    own = {**variables(container), **variables(trainer)}
    assert not own.keys() & OF_TRAINER.keys(), "the trainer refuses a job that sets its variables"
    assert OF_TRAINER["PET_NNODES"] == str(trainer["numNodes"])
    host = "bytelm-node-0-2.bytelm.default.svc.cluster.local"
    options = started(trainer["args"], {**own, **OF_TRAINER}, host=host, monkeypatch=monkeypatch)
    assert (options.nodes, options.spare_nodes, options.processes, options.run_id) == (5, 1, 1, "bytelm")
    assert (options.node_rank, len(hosts(options)), hosts(options)[2]) == (2, 5, host)


def test_without_host_names_torchruns_address_is_the_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    options = parse_options(["t.py"], {**OF_TRAINER, "PET_MASTER_ADDR": "127.0.0.1", "HOLDFAST_TOKEN": "t"})
    assert (options.nodes, options.node_rank, options.peers.known) == (5, 2, (("127.0.0.1", 29500),))


def test_a_flag_overrides_a_variable_and_a_number_is_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse_options(["--nproc-per-node=4", "t.py"], {"PET_NPROC_PER_NODE": "8"}).processes == 4
    assert parse_options(["t.py"], {"PET_NPROC_PER_NODE": "8"}).processes == 8
    with pytest.raises(SystemExit):
        parse_options(["t.py"], {"PET_NPROC_PER_NODE": "auto"})
    assert "invalid int value: 'auto'" in capsys.readouterr().err


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize("name", ["bytelm-jobset.yaml", "bytelm-trainjob.yaml"])
def test_the_jobs_in_the_manifests_are_jobs_of_kubernetes(name: str, minor: str) -> None:
    first = documents(name)[0]["spec"]
    (job,) = first.get("template", {"spec": first})["spec"]["replicatedJobs"]
    made = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": job["template"]["spec"]}
    assert complaints(made, minor) == []
