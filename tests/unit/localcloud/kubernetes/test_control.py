"""The keys of a cluster, and how its programs are started."""

import base64
import json

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from holdfast.localcloud.kubernetes.control import (
    Authority,
    Settings,
    kubeconfig,
    programs,
    proxy_configuration,
)

SETTINGS = Settings(
    address="10.1.255.254",
    port=40001,
    services="172.20.0.0/16",
    issuer="https://oidc.eks.us-west-2.amazonaws.com/id/ABC",
    access=("--authorization-mode=Node,RBAC,Webhook",),
)


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path / "pki")


def subject(certificate, oid):
    found = x509.load_pem_x509_certificate(certificate).subject
    return [one.value for one in found.get_attributes_for_oid(oid)]


def test_an_authority_is_the_same_when_it_is_read_again(tmp_path, authority):
    again = Authority(tmp_path / "pki")
    assert (again.certificate, again.key, again.token_key) == (
        authority.certificate,
        authority.key,
        authority.token_key,
    )


def test_keys_are_for_their_owner_alone(tmp_path, authority):
    assert authority.key
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "pki").iterdir()} == {0o600}
    assert (tmp_path / "pki").stat().st_mode & 0o777 == 0o700


def test_an_authority_whose_making_was_cut_off_is_made_anew(tmp_path):
    (tmp_path / "pki").mkdir()
    (tmp_path / "pki" / "ca.crt").write_bytes(b"half")
    assert x509.load_pem_x509_certificate(Authority(tmp_path / "pki").certificate)


def test_a_client_is_the_user_and_the_groups_that_kubernetes_reads_in_it(authority):
    pair = authority.client("system:node:hyperpod-i-1", groups=["system:nodes"])
    assert subject(pair.certificate, NameOID.COMMON_NAME) == ["system:node:hyperpod-i-1"]
    assert subject(pair.certificate, NameOID.ORGANIZATION_NAME) == ["system:nodes"]


def test_a_client_cannot_serve_and_a_server_is_no_client(authority):
    def usage(pair):
        found = x509.load_pem_x509_certificate(pair.certificate)
        return list(found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)

    assert usage(authority.client("a")) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert usage(authority.server("b", names=["b"])) == [ExtendedKeyUsageOID.SERVER_AUTH]


def test_what_an_authority_signs_is_verified_with_its_certificate(authority):
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    x509.load_pem_x509_certificate(authority.client("a").certificate).verify_directly_issued_by(issuer)


def test_a_server_is_good_for_its_names_and_addresses(authority):
    pair = authority.server("s", names=["kubernetes.default"], addresses=["172.20.0.1"])
    found = x509.load_pem_x509_certificate(pair.certificate)
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["kubernetes.default"]
    assert [str(one) for one in names.get_values_for_type(x509.IPAddress)] == ["172.20.0.1"]


def test_keys_are_elliptic_curves_which_take_no_time(authority):
    found = x509.load_pem_x509_certificate(authority.client("a").certificate)
    assert isinstance(found.public_key(), ec.EllipticCurvePublicKey)


def test_a_kubeconfig_names_server_authority_and_client(authority):
    pair = authority.client("a")
    config = json.loads(kubeconfig(server="https://x:1", authority=authority, pair=pair))
    assert config["clusters"][0]["cluster"]["server"] == "https://x:1"
    assert base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]) == authority.certificate
    assert base64.b64decode(config["users"][0]["user"]["client-key-data"]) == pair.key


def started():
    return {
        one.name: one
        for one in programs(
            SETTINGS, argv=lambda name: ["/k", name], flags=lambda name: [f"--of={name}"], etcd="/tools/etcd"
        )
    }


def test_all_of_a_control_plane_is_started():
    assert list(started()) == [
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kube-proxy",
    ]


def test_only_etcd_and_the_api_server_are_started_before_the_api_server_answers():
    assert [name for name, one in started().items() if not one.after_ready] == ["etcd", "kube-apiserver"]


def test_flags_that_go_with_the_version_are_given_to_each_component():
    for name, one in started().items():
        assert (f"--of={name}" in one.argv) is (name != "etcd")


def test_the_api_server_asks_who_is_let_in():
    assert "--authorization-mode=Node,RBAC,Webhook" in started()["kube-apiserver"].argv


def test_etcd_listens_on_the_loopback_of_the_control_plane_alone():
    listens = [word for word in started()["etcd"].argv if word.startswith("--listen")]
    assert listens
    assert all("//127.0.0.1:" in word for word in listens)


def test_times_after_which_pods_leave_a_silent_node_are_kubernetes_own():
    words = " ".join(word for one in started().values() for word in one.argv)
    assert "toleration-seconds" not in words
    assert "node-monitor" not in words


def test_services_have_the_addresses_that_eks_gives_them():
    assert (SETTINGS.service_address, SETTINGS.dns_address) == ("172.20.0.1", "172.20.0.10")


def test_the_proxy_answers_for_all_nodes_from_the_control_planes_address():
    told = json.loads(proxy_configuration(SETTINGS))
    assert told["bindAddress"] == SETTINGS.address
    assert told["iptables"] == {"masqueradeAll": True}
    assert told["conntrack"]["maxPerCore"] == 0, "else it would set the machine's own"
