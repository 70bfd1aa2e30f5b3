"""
The data channel of the embedded AWS with AWS's own client, session-manager-plugin.

``HOLDFAST_SESSION_MANAGER_PLUGIN`` names its binary.
"""

import contextlib
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
from session_nodes import REGION, ThisMachine, client, target_in_new_cluster

from holdfast.localcloud.aws import serve

PLUGIN = os.environ.get("HOLDFAST_SESSION_MANAGER_PLUGIN", "")
pytestmark = pytest.mark.skipif(
    not Path(PLUGIN or "/none").is_file(),
    reason=f"HOLDFAST_SESSION_MANAGER_PLUGIN is {PLUGIN!r}, no file; allowed: the path of AWS's session-manager-plugin",
)


@pytest.fixture(scope="module")
def aws(tmp_path_factory):
    machine = ThisMachine()
    home = tmp_path_factory.mktemp("cloud")
    with serve(home=home, hyperpod="simulated", enter=lambda _instance: machine) as running:
        yield running


@pytest.fixture(scope="module")
def target(aws):
    return target_in_new_cluster(aws)


@pytest.fixture
def begin(aws, target, tmp_path):
    """Start the plugin as ``aws ssm start-session`` does."""
    variables = {
        "AWS_ACCESS_KEY_ID": aws.keys.access_key_id,
        "AWS_SECRET_ACCESS_KEY": aws.keys.secret_access_key,
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
    }
    started = []

    def begin(document, parameters, **streams):
        request = {"Target": str(target), "Parameters": parameters}
        if document:
            request["DocumentName"] = document
        answer = client(aws, "ssm").start_session(**request)
        response = {name: answer[name] for name in ("SessionId", "TokenValue", "StreamUrl")}
        argv = [PLUGIN, json.dumps(response), REGION, "StartSession", "", json.dumps(request), aws.endpoint]
        started.append(subprocess.Popen(argv, env=variables, **streams))
        return started[-1], response["SessionId"]

    yield begin
    for one in started:
        if one.poll() is None:
            one.kill()
        one.wait()
        for stream in (one.stdin, one.stdout):
            if stream is not None:
                stream.close()


def read_until(descriptor, wanted, *, timeout_s=15):
    found, until_s = b"", time.monotonic() + timeout_s
    while wanted not in found:
        ready, _, _ = select.select([descriptor], [], [], max(until_s - time.monotonic(), 0))
        assert ready, f"{wanted!r} did not come: {found!r}"
        found += os.read(descriptor, 65536)
    return found


def test_a_command_prints_its_output(begin):
    # At the end of its input the plugin ends too, with "Cannot perform start session: EOF".
    process, session_id = begin(
        "AWS-StartNonInteractiveCommand",
        {"command": ["/bin/sh -c 'echo one; echo two >&2'"]},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    output = read_until(process.stdout.fileno(), b".\n\n").decode()
    assert f"Starting session with SessionId: {session_id}\none\ntwo\n" in output
    assert output.endswith(f"Exiting session with sessionId: {session_id}.\n\n")
    assert process.wait(timeout=10) == 0


@pytest.fixture
def terminal(begin):
    """A plugin in a shell, on a terminal of 90 by 30."""
    master, slave = pty.openpty()
    subprocess.run(["stty", "rows", "30", "cols", "90"], stdin=slave, check=True)
    process, session_id = begin("", {}, stdin=slave, stdout=slave, start_new_session=True)
    os.close(slave)
    yield process, master, session_id
    os.close(master)


def test_a_shell_takes_keys_size_and_resize(terminal):
    process, master, session_id = terminal
    read_until(master, b"# ")
    os.write(master, b"stty size\r")
    read_until(master, b"30 90")
    subprocess.run(["stty", "rows", "40", "cols", "100"], stdin=master, check=True)
    time.sleep(1.5)  # the plugin looks twice a second
    os.write(master, b"stty size\r")
    read_until(master, b"40 100")
    os.write(master, b"exit\r")
    read_until(master, f"Exiting session with sessionId: {session_id}".encode())
    assert process.wait(timeout=10) == 0


def test_a_shell_gets_the_plugins_interrupt(terminal):
    process, master, _ = terminal
    read_until(master, b"# ")
    os.write(master, b"sleep 1000\r")
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    os.write(master, b"echo al''ive\r")
    assert b"alive" in read_until(master, b"alive")


def test_a_cut_session_is_resumed_by_the_plugin(terminal):
    process, master, _ = terminal
    read_until(master, b"# ")
    os.write(master, b"kept=1\r")
    read_until(master, b"# ")
    cut_connections(process.pid)
    time.sleep(3)  # five reads of the plugin fail, then it calls ResumeSession
    os.write(master, b"echo kept=$kept-aft''er\r")
    assert b"kept=1-after" in read_until(master, b"-after\r")


def cut_connections(pid):
    """Close the connections of a process, as a network that fails."""
    inodes = {
        link.split("[")[1].rstrip("]")
        for link in (str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir())
        if link.startswith("socket:")
    }
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[9] in inodes and fields[3] == "01":
            port = int(fields[1].partition(":")[2], 16)
            done = subprocess.run(["ss", "-K", "src", f":{port}"], capture_output=True, text=True, check=False)
            if not re.search(rf":{port}\b", done.stdout):
                pytest.skip("this kernel ends no connection from outside (CONFIG_INET_DIAG_DESTROY)")


def serve_echo(listening):
    def answer(connection):
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(65536):
                connection.sendall(data)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


@pytest.fixture
def echo():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serve_echo(listening)
        yield listening.getsockname()[1]


def test_ssh_has_a_connection_on_the_plugins_streams(begin, echo):
    process, session_id = begin(
        "AWS-StartSSHSession", {"portNumber": [str(echo)]}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    sent = bytes(range(256)) * 400
    read_until(process.stdout.fileno(), session_id.encode() + b"\n")
    threading.Thread(target=lambda: (process.stdin.write(sent), process.stdin.flush()), daemon=True).start()
    back = b""
    while len(back) < len(sent):
        back += os.read(process.stdout.fileno(), 65536)
    assert back == sent


def test_a_forwarded_port_takes_several_connections_at_once(begin, echo):
    with socket.create_server(("127.0.0.1", 0)) as free:
        local = free.getsockname()[1]
    process, _ = begin(
        "AWS-StartPortForwardingSession",
        {"portNumber": [str(echo)], "localPortNumber": [str(local)]},
        stdout=subprocess.PIPE,
    )
    read_until(process.stdout.fileno(), b"Waiting for connections")
    with contextlib.ExitStack() as stack:
        lines = [stack.enter_context(socket.create_connection(("127.0.0.1", local))) for _ in range(3)]
        for number, line in enumerate(lines):
            line.settimeout(15)
            line.sendall(b"%d" % number * 50_000)
        for number, line in enumerate(lines):
            back = b""
            while len(back) < 50_000:
                back += line.recv(65536)
            assert back == b"%d" % number * 50_000
