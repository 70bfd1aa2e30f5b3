import pytest

from holdfast.session_manager import ClusterTarget, DocumentError, SessionType, plan_of


def test_without_document_a_session_is_a_shell():
    assert plan_of(None, None).session_type == SessionType.SHELL
    assert plan_of("SSM-SessionManagerRunShell", {}).session_type == SessionType.SHELL


def test_a_document_may_be_named_by_its_arn():
    plan = plan_of("arn:aws:ssm:us-west-2::document/AWS-StartSSHSession", None)
    assert (plan.session_type, plan.port, plan.properties) == (SessionType.PORT, 22, {"portNumber": "22"})


def test_port_forwarding_tells_the_client_its_port():
    plan = plan_of("AWS-StartPortForwardingSession", {"portNumber": ["8080"], "localPortNumber": ["9090"]})
    assert plan.properties == {"portNumber": "8080", "type": "LocalPortForwarding", "localPortNumber": "9090"}


@pytest.mark.parametrize("values", [[], ["ls", "id"]])
def test_a_parameter_has_one_value(values):
    with pytest.raises(DocumentError, match="takes one value"):
        plan_of("AWS-StartInteractiveCommand", {"command": values})


@pytest.mark.parametrize("port", ["0", "65536", "-1", "22 ", "٣", "1e3", ""])
def test_a_port_is_a_port(port):
    with pytest.raises(DocumentError):
        plan_of("AWS-StartSSHSession", {"portNumber": [port]})


def test_a_target_is_read_as_it_is_written():
    target = ClusterTarget(cluster_id="abc123def456", group="work-group-2", instance_id="i-0123456789abcdef0")
    assert str(target) == "sagemaker-cluster:abc123def456_work-group-2-i-0123456789abcdef0"
    assert ClusterTarget.parse(str(target)) == target
    for wrong in ("i-0123456789abcdef0", str(target) + "x", str(target)[1:], "sagemaker-cluster:abc_a-i-01234567"):
        assert ClusterTarget.parse(wrong) is None
