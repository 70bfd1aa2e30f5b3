"""A node booted from the image: its Python, its services, its stand-ins, and what they refuse."""

from collections.abc import Iterator
from pathlib import Path

import aws_nodes
import pytest
from aws_nodes import FSX_DNS, FSX_NAME, WORKER, Node, ok

pytestmark = [pytest.mark.e2e, pytest.mark.root]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with aws_nodes.nodes(tmp_path_factory.mktemp("image") / "home", orchestrator="slurm") as nodes:
        yield nodes.boot(WORKER, fsx=False)


def failed(node: Node, *argv: str) -> tuple[int, str]:
    done = node.run(argv, timeout_s=30)
    assert done.returncode != 0, (argv, done.stdout)
    return done.returncode, done.stderr + done.stdout


def test_python3_is_the_one_that_the_image_says_and_has_yaml(node: Node):
    said = ok(node, "cat", "/etc/holdfast-image")
    version = ok(node, "python3", "-c", "import sys, yaml; print('%d.%d' % sys.version_info[:2])")
    assert f"python{version} of " in said or f"the machine's own python {version}" in said
    assert ok(node, "python3", "-c", "import yaml; print(yaml.__version__)", user="ubuntu")


@pytest.mark.documented("HP-90")
def test_ubuntu_has_sudo_without_a_password_and_is_in_dockers_group(node: Node):
    assert ok(node, "sudo", "id", "-un", user="ubuntu") == "root"
    assert "docker" in ok(node, "id", "-nG", "ubuntu").split()


def test_services_run_as_their_users_and_no_key_of_the_machine_is_there(node: Node):
    ok(node, "systemctl", "start", "munge", "ssh")
    pid = ok(node, "systemctl", "show", "-p", "MainPID", "--value", "munge")
    assert ok(node, "stat", "-c", "%U", f"/proc/{pid}") == "munge"
    assert "STATUS:          Success" in ok(node, "sh", "-c", "munge -n | unmunge")
    assert sorted(ok(node, "sh", "-c", "ls /etc/ssh/ssh_host*").split()) == [
        "/etc/ssh/ssh_host_ed25519_key",
        "/etc/ssh/ssh_host_ed25519_key.pub",
    ]
    refused = node.run(["systemctl", "stop", "ssh"], timeout_s=10, user="ubuntu")
    assert (refused.returncode, "Interactive authentication required" in refused.stderr) == (4, True)


def test_what_starts_at_boot_is_the_images_and_not_the_machines(node: Node):
    wanted = ok(node, "ls", "/etc/systemd/system/multi-user.target.wants").split()
    assert wanted == ["containerd.service", "dlami-nvme.service", "docker.service", "munge.service", "ssh.service"]
    assert ok(node, "systemctl", "list-unit-files", "--state=enabled", "--no-legend", "--type=service").split()[
        ::2
    ] == [*wanted]


def test_the_database_starts_empty_and_comes_back_after_a_kill(node: Node):
    if not Path("/usr/sbin/mariadbd").exists():
        pytest.skip("needs mariadbd")
    ok(node, "systemctl", "start", "mariadb")
    assert ok(node, "mysql", "-u", "root", "-Ne", "select 1") == "1"
    ok(node, "systemctl", "kill", "-s", "KILL", "mariadb")
    again = "systemctl show -p ActiveState,NRestarts --value mariadb | tr '\\n' ' '"
    ok(node, "sh", "-c", f'for i in $(seq 200); do [ "$({again})" = "active 1 " ] && exit 0; sleep 0.1; done; exit 1')
    ok(node, "systemctl", "stop", "mariadb")


def test_database_and_daemons_of_slurm_have_the_images_settings_and_not_the_machines(node: Node):
    if not Path("/usr/sbin/mariadbd").exists():
        pytest.skip("needs mariadbd")
    assert sorted(ok(node, "find", "/etc/mysql", "-type", "f").split()) == [
        "/etc/mysql/mariadb.conf.d/90-holdfast.cnf",
        "/etc/mysql/my.cnf",
    ]
    (socket,) = ok(node, "sh", "-c", "sed -n 's/^socket = //p' /etc/mysql/my.cnf").split()
    assert ok(node, "sh", "-c", "cat /etc/default/munge /etc/default/slurm*").split() == [f"MYSQL_UNIX_PORT={socket}"]
    ok(node, "systemctl", "start", "mariadb")
    assert ok(node, "mysql", "-u", "root", "-Ne", "select @@socket") == socket
    ok(node, "systemctl", "stop", "mariadb")


def test_lustre_mounts_by_name_and_fails_in_its_own_words(node: Node):
    code, said = failed(node, "mount", "-t", "lustre", f"{FSX_DNS}@tcp:/wrong", "/mnt")
    assert code == 2
    assert f"mount.lustre: mount {FSX_DNS}@tcp:/wrong at /mnt failed: No such file or directory" in said
    assert "Is the MGS specification correct?" in said
    assert failed(node, "mount", "-t", "lustre", "fs-9.fsx@tcp:/x", "/mnt")[0] == 22
    ok(node, "mount", "-t", "lustre", "-o", "noatime,flock", f"{FSX_DNS}@tcp:/{FSX_NAME}", "/mnt")
    ok(node, "touch", "/mnt/there")
    assert ok(node, "ls", f"/run/holdfast/lustre/{FSX_DNS}/{FSX_NAME}") == "there"
    ok(node, "umount", "/mnt")


def test_an_fstab_entry_becomes_an_automount_that_mounts(node: Node):
    entry = f"{FSX_DNS}@tcp:/{FSX_NAME} /fsx lustre noatime,_netdev,x-systemd.automount 0 0\n"
    node.write_file("/etc/fstab", entry.encode())
    ok(node, "systemctl", "daemon-reload")
    ok(node, "systemctl", "restart", "remote-fs.target")
    ok(node, "mountpoint", "/fsx")
    assert "active (running)" in ok(node, "systemctl", "status", "fsx.automount")
    assert "fsx.automount" in ok(node, "systemctl", "list-units")


def test_docker_keeps_containers_while_its_service_runs(node: Node):
    image = "602401143452.dkr.ecr.us-west-2.amazonaws.com/hyperpod/x:1"
    assert "Cannot connect to the Docker daemon" in failed(node, "docker", "ps")[1]
    ok(node, "systemctl", "start", "docker")
    assert "no basic auth credentials" in failed(node, "docker", "pull", image)[1]
    login = f"echo secret | docker login --username AWS --password-stdin {image.partition('/')[0]}"
    assert ok(node, "sh", "-c", login) == "Login Succeeded"
    ok(node, "docker", "run", "-d", "--restart", "always", "--name", "one", "-v", "/:/host:ro", image, "--flag")
    assert ok(node, "docker", "ps", "--filter", "name=one", "--filter", "status=running", "-q")
    assert "already" not in failed(node, "docker", "run", "-d", "--name", "one", image)[1]
    ok(node, "docker", "stop", "one")
    assert ok(node, "docker", "ps", "-q") == ""
    ok(node, "docker", "rm", "-f", "one", "never-there")


@pytest.mark.parametrize(
    "argv",
    [
        ("docker", "build", "."),
        ("docker", "run", "-it", "x"),
        ("modinfo", "-d", "lustre"),
        ("lctl", "ping", "x"),
        ("apt-get", "remove", "apg"),
        ("python3", "-m", "pip", "list"),
    ],
)
def test_a_usage_that_no_script_of_aws_has_is_refused(node: Node, argv: tuple[str, ...]):
    assert "stand-in does not support" in failed(node, *argv)[1]


def test_what_is_not_there_is_not_found(node: Node):
    assert failed(node, "modprobe", "nvidia_peermem")[0] == 1
    assert "Unable to locate package" in failed(node, "apt-get", "install", "-y", "no-such-package")[1]
    assert "No matching distribution found for numpy" in failed(node, "python3", "-m", "pip", "install", "numpy")[1]
    assert failed(node, "/opt/amazon/efa/bin/fi_info", "-p", "efa")[0] == 61
    assert failed(node, "curl", "-sf", "http://127.0.0.1:9/")[0] == 7


def test_ansible_is_there_once_installed_and_does_what_it_says(node: Node):
    ok(node, "python3", "-m", "pip", "install", "--break-system-packages", "ansible==10.7.0")
    run = ("ansible", "localhost", "-b", "-m")
    made = ok(node, *run, "ansible.builtin.file", "-a", "path='/srv/a b' state=directory owner=ubuntu mode=0700")
    assert made.startswith("localhost | CHANGED => {")
    assert ok(node, "stat", "-c", "%U %a", "/srv/a b") == "ubuntu 700"
    code, said = failed(
        node, *run, "ansible.posix.mount", "-a", "path=/srv/x src=no@tcp:/x fstype=lustre state=mounted"
    )
    assert (code, "localhost | FAILED! =>" in said, "Error mounting /srv/x" in said) == (2, True, True)
    assert failed(node, *run, "ansible.builtin.command", "-a", "mountpoint /srv/x")[0] == 2
    assert "stand-in does not support" in failed(node, *run, "ansible.builtin.ping")[1]


def test_aws_calls_the_endpoint_that_the_node_was_given_even_under_sudo(node: Node):
    query = ("--query", "Vpcs[0].IsDefault", "--output", "text")
    assert ok(node, "sudo", "aws", "ec2", "describe-vpcs", "--region", "us-west-2", *query, user="ubuntu") == "True"
    # Version 2 ends with 254 where the service refuses, and so does the stand-in; version 1 with 255.
    is_real = "aws-cli/1." in ok(node, "sh", "-c", "aws --version 2>&1 || true")
    assert failed(node, "aws", "ec2", "describe-vpcs", "--vpc-ids", "vpc-00000000")[0] == (255 if is_real else 254)
    assert ("Invalid choice" if is_real else "does not support") in failed(node, "aws", "ec2", "make-coffee")[1]
