"""Session Manager of the embedded AWS, with Holdfast's client; the node is this machine."""

import contextlib
import hashlib
import json
import os
import random
import socket
import subprocess
import threading
import time

import boto3
import pytest
from botocore.exceptions import ClientError
from cutting import CuttableWay
from session_nodes import REGION, ThisMachine, access_of, client, target_in_new_cluster
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from holdfast.cli.node_access import NodeAccessError
from holdfast.localcloud.aws import serve
from holdfast.session_manager import (
    ChannelClosed,
    ClientMessage,
    DataStream,
    HandshakeResponse,
    MessageType,
    OpenDataChannel,
    PayloadType,
    ProcessedAction,
)


@pytest.fixture(scope="module")
def machine():
    return ThisMachine()


@pytest.fixture(scope="module")
def aws(tmp_path_factory, machine):
    home = tmp_path_factory.mktemp("cloud")
    with serve(home=home, hyperpod="simulated", enter=lambda _instance: machine) as running:
        yield running


@pytest.fixture(scope="module")
def target(aws):
    return target_in_new_cluster(aws)


@pytest.fixture(scope="module")
def access(aws, target):
    return access_of(aws, target)


def run(access, *argv, **more):
    return access.run(node="node", argv=list(argv), **more)


def test_a_command_returns_its_streams_and_its_exit_code(access):
    done = run(access, "/bin/sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.stdout, done.stderr, done.returncode) == ("out\n", "err\n", 7)


def test_words_reach_the_command_unchanged(access):
    words = ["a b", "'", '"', "$HOME", "`id`", "#", "é\n\t", "*", "", "\\"]
    done = run(access, "python3", "-c", "import sys; print(sys.argv[1:])", *words)
    assert done.stdout == f"{words}\n"


def test_text_is_the_input_and_without_text_there_is_none(access):
    assert run(access, "cat", text="one\ntwo").stdout == "one\ntwo"
    assert run(access, "cat").stdout == ""


def test_two_megabytes_arrive_as_they_are(access):
    done = run(access, "python3", "-c", "print('0123456789abcdé' * 131072)", timeout_s=60)
    assert done.stdout == "0123456789abcdé" * 131072 + "\n"


def test_variables_and_the_account_are_those_that_were_asked_for(access):
    done = run(access, "/bin/sh", "-c", 'echo "$GIVEN $USER $HOME"', env={"GIVEN": "a 'b'"})
    assert done.stdout == "a 'b' root /root\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: another account")
def test_a_user_runs_with_the_ids_of_the_node(access):
    assert run(access, "id", "-un", user="nobody").stdout == "nobody\n"
    assert "no user 'nobody-else'" in run(access, "true", user="nobody-else").stderr


def test_a_command_that_does_not_end_is_killed(access, machine):
    with pytest.raises(subprocess.TimeoutExpired):
        run(access, "sleep", "1000", timeout_s=1.5)
    assert machine.started[-1].wait(timeout=10) != 0


def test_a_node_of_another_name_is_not_connected(aws, target):
    ssm = client(aws, "ssm")
    wrong = [
        str(target).replace("work-group", "other-group"),
        f"{target}0",
        target.instance_id,
        str(target).replace(target.cluster_id, "a" * 12),
    ]
    for one in wrong:
        with pytest.raises(ClientError) as caught:
            ssm.start_session(Target=one)
        assert caught.value.response["Error"]["Code"] == "TargetNotConnected"


def test_unknown_documents_and_parameters_are_refused(aws, target):
    ssm = client(aws, "ssm")
    cases = [
        ("AWS-StartNothing", {}, "InvalidDocument"),
        ("AWS-StartNonInteractiveCommand", {"commands": ["ls"]}, "InvalidParameters"),
        ("AWS-StartNonInteractiveCommand", {}, "InvalidParameters"),
        ("AWS-StartSSHSession", {"portNumber": ["70000"]}, "InvalidParameters"),
    ]
    for document, parameters, code in cases:
        with pytest.raises(ClientError) as caught:
            ssm.start_session(Target=str(target), DocumentName=document, Parameters=parameters)
        assert caught.value.response["Error"]["Code"] == code, document


def test_a_port_of_the_node_is_reached_and_bytes_stay_what_they_are(access):
    sent = bytes(range(256)) * 4096
    received = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer():
            connection, _ = listening.accept()
            with connection:
                while len(received) < len(sent) and (data := connection.recv(65536)):
                    received.extend(data)
                connection.sendall(received[::-1])

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        here, there = socket.socketpair()
        relay = threading.Thread(
            target=access.relay,
            kwargs={
                "node": "node",
                "port": listening.getsockname()[1],
                "source": there.fileno(),
                "sink": there.fileno(),
            },
            daemon=True,
        )
        relay.start()
        here.sendall(sent)
        back = bytearray()
        while len(back) < len(sent):
            back.extend(here.recv(65536))
        assert bytes(received) == sent
        assert bytes(back) == sent[::-1]
        relay.join(timeout=15)
        assert not relay.is_alive()
        here.close()
        there.close()


def test_a_port_without_listener_is_an_error(access):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(NodeAccessError, match="refused"):
        access.relay(node="node", port=port, source=0, sink=1)


class Client:
    """A client of one session, message by message."""

    def __init__(self, url, token):
        self.url, self.stream = url, DataStream(sends=MessageType.INPUT)
        self.output, self.closed = b"", None
        self.open(token)

    def open(self, token):
        self.lines = contextlib.ExitStack()
        self.line = self.lines.enter_context(connect(self.url, compression=None, proxy=None))
        self.line.send(
            OpenDataChannel(request_id="r" * 36, token=token, client_id="c", client_version="1.2.0.0").encode()
        )
        for raw in self.stream.resumed(now_s=time.time()):
            self.line.send(raw)

    def send(self, payload_type, payload):
        raw = self.stream.send(payload_type, payload, now_s=time.time())
        self.line.send(raw)
        return raw

    def read(self, until, *, acknowledge=True):
        """Read until the output has these bytes, or the channel is closed."""
        while until not in self.output and self.closed is None:
            message = ClientMessage.decode(self.line.recv(timeout=10))
            if message.message_type == MessageType.CHANNEL_CLOSED:
                self.closed = ChannelClosed.decode(message.payload).output
                return
            if message.message_type == MessageType.OUTPUT and not acknowledge:
                return
            found = self.stream.receive(message, now_s=time.time())
            for raw in found.replies:
                self.line.send(raw)
            for one in found.delivered:
                if one.payload_type == PayloadType.HANDSHAKE_REQUEST:
                    answer = HandshakeResponse(client_version="1.2.0.0", actions=[ProcessedAction(kind="SessionType")])
                    self.send(PayloadType.HANDSHAKE_RESPONSE, answer.encode())
                elif one.payload_type == PayloadType.OUTPUT:
                    self.output += one.payload


@pytest.fixture
def shell(aws, target):
    """A client in a shell, with its session."""
    ssm = client(aws, "ssm")
    started = ssm.start_session(Target=str(target))
    made = Client(started["StreamUrl"], started["TokenValue"])
    yield ssm, started, made
    ssm.terminate_session(SessionId=started["SessionId"])
    made.lines.close()


def test_a_shell_has_a_terminal_of_the_given_size(shell):
    _, _, one = shell
    one.send(PayloadType.SIZE, b'{"cols": 117, "rows": 33}')
    one.read(b"# ")
    one.send(PayloadType.SIZE, b'{"cols": 118, "rows": 34}')
    one.send(PayloadType.OUTPUT, b"stty size; test -t 0 && echo terminal\r")
    one.read(b"\nterminal")
    assert b"34 118" in one.output
    one.send(PayloadType.OUTPUT, b"exit\r")
    one.read(b"never")
    assert one.closed == ""


def test_a_session_that_was_cut_goes_on_where_it_was(shell):
    ssm, started, one = shell
    one.read(b"# ")
    one.send(PayloadType.OUTPUT, b"kept=before; sleep 0.5; echo got=$kept; echo $((6*7))-\r")
    one.line.socket.shutdown(socket.SHUT_RDWR)
    time.sleep(1)
    lost = one.stream.send(PayloadType.OUTPUT, b"echo aft''er\r", now_s=time.time())
    one.open(ssm.resume_session(SessionId=started["SessionId"])["TokenValue"])
    one.line.send(lost)  # a second time
    one.read(b"\nafter")
    assert one.output.count(b"got=before") == 1
    assert one.output.count(b"42-") == 1
    assert one.output.count(b"\nafter") == 1


def test_what_is_not_acknowledged_comes_again(shell):
    _, _, one = shell
    one.read(b"never", acknowledge=False)
    one.read(b"# ")
    assert one.output.endswith(b"# ")


def test_a_token_is_for_one_connection(shell):
    _, started, one = shell
    one.read(b"# ")
    for token in (started["TokenValue"], "", "x" * 128):
        with connect(started["StreamUrl"], proxy=None) as line:
            line.send(OpenDataChannel(request_id="r", token=token, client_id="c", client_version="1").encode())
            with pytest.raises(ConnectionClosed) as caught:
                line.recv(timeout=10)
            assert caught.value.rcvd.code == 1008
    one.send(PayloadType.OUTPUT, b"echo still''here\r")
    one.read(b"stillhere")


@pytest.mark.parametrize("first", ["[]", "{", b"\0" * 200, '{"TokenValue": 7}'])
def test_a_first_message_that_is_no_opening_closes_the_connection(shell, first):
    _, started, _ = shell
    with connect(started["StreamUrl"], proxy=None) as line:
        line.send(first)
        with pytest.raises(ConnectionClosed) as caught:
            line.recv(timeout=10)
        assert caught.value.rcvd.code == 1002


@pytest.mark.parametrize("wrong", [b"x", b"\0" * 120, b"\xff" * 300_000])
def test_a_message_that_is_none_costs_the_connection_and_not_the_session(shell, wrong):
    ssm, started, one = shell
    one.read(b"# ")
    one.line.send(wrong)
    with pytest.raises(ConnectionClosed):
        list(iter(lambda: one.line.recv(timeout=10), None))
    one.open(ssm.resume_session(SessionId=started["SessionId"])["TokenValue"])
    one.send(PayloadType.OUTPUT, b"echo still''here\r")
    one.read(b"stillhere")


def test_a_terminated_session_ends_its_shell_and_cannot_be_resumed(shell, machine):
    ssm, started, one = shell
    one.read(b"# ")
    process = machine.started[-1]
    ssm.terminate_session(SessionId=started["SessionId"])
    one.read(b"never")
    assert one.closed == ""
    assert process.wait(timeout=10) is not None
    with pytest.raises(ClientError, match="DoesNotExist"):
        ssm.resume_session(SessionId=started["SessionId"])


def test_a_web_page_cannot_open_a_data_channel(shell):
    _, started, _ = shell
    with pytest.raises(InvalidStatus) as caught, connect(started["StreamUrl"], origin="http://localhost", proxy=None):
        pass
    assert caught.value.response.status_code == 403


def test_a_failed_handshake_ends_the_session_with_its_reason(aws, target):
    started = client(aws, "ssm").start_session(Target=str(target))
    one = Client(started["StreamUrl"], started["TokenValue"])
    response = HandshakeResponse(
        client_version="1", actions=[ProcessedAction(kind="SessionType", status=2, error="no")]
    )
    one.send(PayloadType.HANDSHAKE_RESPONSE, response.encode())
    one.read(b"never", acknowledge=True)
    assert one.closed == "handshake failed: no"
    one.lines.close()


def test_a_role_starts_sessions_of_the_cluster_and_the_documents_that_its_policy_names(aws, target):
    account = "123456789012"
    iam = client(aws, "iam")
    trust = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{account}:root"}, "Action": "sts:AssumeRole"}
        ],
    }
    document = "AWS-StartNonInteractiveCommand"
    policy = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Action": "ssm:StartSession",
                "Resource": [
                    f"arn:aws:sagemaker:{REGION}:{account}:cluster/{target.cluster_id}",
                    f"arn:aws:ssm:{REGION}::document/{document}",
                ],
            }
        ],
    }
    role = iam.create_role(RoleName="caller", AssumeRolePolicyDocument=json.dumps(trust))["Role"]["Arn"]
    iam.put_role_policy(RoleName="caller", PolicyName="sessions", PolicyDocument=json.dumps(policy))
    got = client(aws, "sts").assume_role(RoleArn=role, RoleSessionName="someone")["Credentials"]
    ssm = boto3.client(
        "ssm",
        region_name=REGION,
        endpoint_url=aws.endpoint,
        aws_access_key_id=got["AccessKeyId"],
        aws_secret_access_key=got["SecretAccessKey"],
        aws_session_token=got["SessionToken"],
    )
    started = ssm.start_session(Target=str(target), DocumentName=document, Parameters={"command": ["true"]})
    for refused in (
        {"Target": str(target)},
        {"Target": str(target).replace(target.cluster_id, "a" * 12), "DocumentName": document},
    ):
        with pytest.raises(ClientError, match="AccessDenied"):
            ssm.start_session(**refused)
    # The session of a role is its own.
    with pytest.raises(ClientError, match="DoesNotExist"):
        client(aws, "ssm").resume_session(SessionId=started["SessionId"])
    with pytest.raises(ClientError, match="AccessDenied"):
        ssm.terminate_session(SessionId=started["SessionId"])
    ssm.close()


@pytest.fixture
def way(aws):
    with CuttableWay(aws.port) as made:
        yield made


@pytest.fixture
def over_way(aws, target, way):
    """Access whose data channels go over the way, and whose requests do not."""
    return access_of(aws, target, channel_port=way.port)


def test_a_command_outlives_cuts_of_its_session(over_way, way):
    found = []
    thread = threading.Thread(
        target=lambda: found.append(
            run(over_way, "/bin/sh", "-c", "sleep 1; seq 50000; sleep 1; echo end >&2; exit 3", timeout_s=60)
        )
    )
    thread.start()
    for _ in range(3):
        time.sleep(0.6)
        way.cut()
    thread.join(timeout=60)
    [done] = found
    assert done.stdout == "".join(f"{number}\n" for number in range(1, 50001))
    assert (done.stderr, done.returncode) == ("end\n", 3)
    assert way.connections >= 3


def test_bytes_of_a_connection_outlive_cuts_in_order(over_way, way):
    sent = random.Random(5).randbytes(3 << 20)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer():
            connection, _ = listening.accept()
            with connection:
                while data := connection.recv(65536):
                    connection.sendall(data)

        threading.Thread(target=answer, daemon=True).start()
        here, there = socket.socketpair()
        ends = there.fileno()
        port = listening.getsockname()[1]
        relay = threading.Thread(
            target=lambda: over_way.relay(node="node", port=port, source=ends, sink=ends), daemon=True
        )
        relay.start()
        threading.Thread(target=here.sendall, args=(sent,), daemon=True).start()
        here.settimeout(60)
        back, cuts = bytearray(), 0
        while len(back) < len(sent):
            back += here.recv(65536)
            if len(back) > (cuts + 1) * len(sent) // 5:
                cuts += 1
                way.cut()
        assert hashlib.sha256(back).digest() == hashlib.sha256(sent).digest()
        assert way.connections >= 4
        here.shutdown(socket.SHUT_RDWR)
        relay.join(timeout=30)
        assert not relay.is_alive()
        here.close()
        there.close()


def test_a_session_that_cannot_be_reached_any_more_is_lost_and_its_command_ended(over_way, way, machine):
    failed = []

    def command():
        try:
            run(over_way, "sleep", "100", timeout_s=90)
        except NodeAccessError as error:
            failed.append(str(error))

    thread = threading.Thread(target=command)
    before = len(machine.started)
    thread.start()
    while len(machine.started) == before:
        time.sleep(0.1)
    with way:
        pass
    thread.join(timeout=60)
    assert len(failed) == 1
    assert "was lost" in failed[0]
    assert machine.started[-1].wait(timeout=10) != 0
