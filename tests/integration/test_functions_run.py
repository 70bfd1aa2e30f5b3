"""Lambda functions that really run: what they see, when they end, and what CloudFormation makes of their answers."""

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from installed_charts import BUCKET, Stacks, installer, release, zipped

from holdfast.localcloud.aws import serve
from holdfast.localcloud.aws.cloudformation.resources.custom import Answers
from holdfast.localcloud.functions import FunctionError, LambdaFunction, PackageError, Packages, Run, run

pytestmark = [pytest.mark.e2e, pytest.mark.root]

PLACE = {"Bucket": BUCKET, "Key": "charts/a.tar.gz"}
PIN = {"path": "charts/demo", "digest": "a" * 64}
ANSWER = """
import json, os, sys, time, urllib.request
import boto3

def tell(event, status, **more):
    body = {"Status": status, "PhysicalResourceId": "kube-system/demo", "StackId": event["StackId"],
            "RequestId": event["RequestId"], "LogicalResourceId": event["LogicalResourceId"], **more}
    request = urllib.request.Request(event["ResponseURL"], data=json.dumps(body).encode(), method="PUT")
    urllib.request.urlopen(request, timeout=10).close()
"""


def function(folder: Path, body: str, **changed: Any) -> LambdaFunction:
    code = zipped({"index.py": (textwrap.dedent(body)).encode()})
    told = {
        "function_name": "f", "function_version": "$LATEST", "invoked_function_arn": "arn", "aws_request_id": "r",
        "memory_limit_in_mb": 128, "log_group_name": "g", "log_stream_name": "s",
    }  # fmt: skip
    given = {"environment": {"GIVEN": "yes"}, "context": told, "timeout_s": 20.0, "layers": None, **changed}
    return LambdaFunction(code=Packages(folder).unpacked(body, fetch=[lambda: code]), handler="index.handler", **given)


def ran(folder: Path, body: str, **changed: Any) -> Run:
    return run(function(folder, body, **changed), event={"n": 1}, pause=time.sleep, root=folder / "root")


def test_a_function_gets_its_event_its_variables_and_its_layers(tmp_path: Path) -> None:
    layer = zipped({"helm/helm": b"#!/bin/sh\necho layer\n"}, programs=frozenset({"helm/helm"}))
    layers = Packages(tmp_path).unpacked("layer", fetch=[lambda: layer])
    body = """
        import os, subprocess
        def handler(event, context):
            print(event, sorted(os.environ), context.function_name, 0 < context.get_remaining_time_in_millis() <= 20000)
            print(subprocess.run(["/opt/helm/helm"], capture_output=True, text=True).stdout)
    """

    done = ran(tmp_path, body, layers=layers)

    assert done.ended, done.output
    assert "{'n': 1} ['GIVEN', 'LC_CTYPE'] f True" in done.output
    assert "layer" in done.output


@pytest.fixture
def python_below_opt(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """This process's interpreter and packages are in a virtual environment below /opt, as hosted runners have them."""
    packages = sysconfig.get_path("purelib")
    with tempfile.TemporaryDirectory(prefix="holdfast-test-", dir="/opt") as folder:
        place = Path(folder) / "python"
        place.parent.chmod(0o755)
        venv.create(place, symlinks=True)
        own = place / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
        (own / "these.pth").write_text(f"import site; site.addsitedir({packages!r})\n")
        monkeypatch.setattr(sys, "prefix", str(place))
        monkeypatch.setattr(sys, "executable", str(place / "bin" / "python"))
        yield place


def test_a_function_gets_its_layers_beside_an_interpreter_below_opt(tmp_path: Path, python_below_opt: Path) -> None:
    packed = zipped({"python/told.py": b"said = 'a layer'\n", "helm/helm": b"#!/bin/sh\n", "helm.txt": b"one file"})
    layers = Packages(tmp_path).unpacked("layer", fetch=[lambda: packed])
    (layers / "linked").symlink_to("helm.txt")
    body = """
        import os, sys
        def handler(event, context):
            sys.path.insert(0, "/opt/python")
            import told
            print(told.said, "in", sys.prefix)
            print(sorted(os.listdir("/opt")), os.listdir("/opt/helm"), open("/opt/linked").read())
            try:
                open("/opt/x", "w")
            except OSError as error:
                print("not written:", error.strerror)
    """

    done = ran(tmp_path, body, layers=layers)

    assert done.ended, done.output
    assert f"a layer in {python_below_opt}" in done.output
    seen = sorted(["helm", "helm.txt", "linked", "python", python_below_opt.parent.name])
    assert f"{seen} ['helm'] one file" in done.output
    assert "not written: Read-only file system" in done.output


def test_layers_that_would_hide_the_interpreter_are_refused_with_what_to_do(
    tmp_path: Path, python_below_opt: Path
) -> None:
    packed = zipped({f"{python_below_opt.relative_to('/opt')}/bin/python": b"another"})
    layers = Packages(tmp_path).unpacked("layer", fetch=[lambda: packed])

    with pytest.raises(
        FunctionError, match=f"have {python_below_opt}, where this machine's Python is .* outside of /opt"
    ):
        ran(tmp_path, "def handler(event, context):\n    print('begun')\n", layers=layers)


def test_a_function_sees_no_home_and_no_process_of_the_machine_and_writes_to_its_tmp_alone(tmp_path: Path) -> None:
    secret = tmp_path / "aws" / "credentials.json"
    secret.parent.mkdir()
    secret.write_text("secret")
    body = f"""
        import os
        def handler(event, context):
            print("seen", os.path.exists({str(secret)!r}), [p for p in os.listdir("/proc") if p.isdigit()] == ["1"])
            for path in ("/x", "/usr/x", "/var/task/x", "/etc/x", "/opt/x", "/dev/x"):
                try:
                    open(path, "w")
                    print("written", path)
                except OSError:
                    pass
            open("/tmp/x", "w").write("mine")
            rights = [line.split()[1] for line in open("/proc/self/status") if line.startswith("CapBnd")]
            print("rights", os.getuid() != 0, rights)
    """

    done = ran(tmp_path, body)

    assert done.ended, done.output
    assert "seen False True" in done.output
    assert "written" not in done.output
    assert "rights True ['0000000000000000']" in done.output
    assert not Path("/tmp/x").exists()


def test_functions_share_an_empty_folder_of_root_and_no_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    body = "import time\ndef handler(event, context):\n    open('/tmp/x', 'x')\n    time.sleep(0.3)\n"

    with ThreadPoolExecutor() as pool:
        done = [*pool.map(lambda _: ran(tmp_path, body), range(2))]

    assert [one.ended for one in done] == [True, True], done
    root = tmp_path / "root"
    assert (root.stat().st_mode & 0o777, [*root.iterdir()]) == (0o700, [])


def test_a_function_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    body = """
        import subprocess, time
        def handler(event, context):
            print(subprocess.Popen(["sleep", "4721"], start_new_session=True).pid, flush=True)
            time.sleep(60)
    """

    began = time.monotonic()
    done = ran(tmp_path, body, timeout_s=1.0)

    assert done.timed_out
    assert not done.ended
    assert time.monotonic() - began < 10
    alive = subprocess.run(["pgrep", "-f", "^sleep 4721$"], capture_output=True, text=True, check=False).stdout
    assert alive == ""


def test_a_function_ends_when_whoever_waits_for_it_is_stopped(tmp_path: Path) -> None:
    def stopped(_: float) -> None:
        raise InterruptedError

    body = "def handler(event, context):\n    __import__('subprocess').run(['sleep', '4722'])\n"
    with pytest.raises(InterruptedError):
        run(function(tmp_path, body), event={}, pause=stopped, root=tmp_path / "root")

    alive = subprocess.run(["pgrep", "-f", "^sleep 4722$"], capture_output=True, text=True, check=False).stdout
    assert alive == ""


def test_a_handler_that_raises_says_what(tmp_path: Path) -> None:
    done = ran(tmp_path, "def handler(event, context):\n    raise KeyError('what')\n")

    assert not done.ended
    assert "[ERROR] KeyError: 'what'" in done.output


@pytest.mark.parametrize("name", ["../out", "/out"])
def test_an_archive_that_leads_out_of_its_folder_is_refused_and_leaves_nothing(tmp_path: Path, name: str) -> None:
    packages = Packages(tmp_path / "functions")

    with pytest.raises(PackageError, match="allowed: plain files below"):
        packages.unpacked("bad", fetch=[lambda: zipped({name: b"x"})])

    assert not (tmp_path / "out").exists()
    with pytest.raises(PackageError):  # and is not taken for unpacked the next time
        packages.unpacked("bad", fetch=[lambda: b"no zip"])


def test_a_function_reads_its_code_whatever_files_its_caller_makes(tmp_path: Path) -> None:
    code = {
        "index.py": b"from deep.er import it\ndef handler(event, context): print(it)\n",
        "deep/er.py": b"it = 'read'\n",
    }
    before = os.umask(0o077)
    try:
        folder = Packages(tmp_path / "functions").unpacked("deep", fetch=[lambda: zipped(code)])
        changed = replace(function(tmp_path, ""), code=folder)
        done = run(changed, event={}, pause=time.sleep, root=tmp_path / "root")
    finally:
        os.umask(before)

    assert done.output == "read\n"


def test_a_folder_is_unpacked_once(tmp_path: Path) -> None:
    packages, fetched = Packages(tmp_path / "functions"), []

    def fetch() -> bytes:
        fetched.append(1)
        return zipped({"a": b"x"})

    assert packages.unpacked("same", fetch=[fetch]) == packages.unpacked("same", fetch=[fetch])
    assert len(fetched) == 1


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stacks]:
    with serve(home=tmp_path_factory.mktemp("cloud"), hyperpod="simulated") as running:
        made = Stacks(running)
        made.real_cluster("lab")
        yield made
        made.close()


def template(stacks: Stacks, name: str, body: str, *, resource: dict[str, Any], **changed: Any) -> dict[str, Any]:
    code = stacks.put(f"{name}.zip", zipped({"helm_installer/handler.py": (ANSWER + textwrap.dedent(body)).encode()}))
    made = {**installer(code, None, FunctionName=name, **changed), "Custom": resource}
    made["Log"]["Properties"]["LogGroupName"] = f"/{name}"
    return made


def test_a_stack_gets_what_its_function_answers_and_the_log_says_what_was_done(stacks: Stacks) -> None:
    body = """
        def on_event(event, context):
            given = event["ResourceProperties"]["Wait"]
            print(event["RequestType"], event["ResourceType"], given, event.get("PhysicalResourceId"))
            print(boto3.client("sts").get_caller_identity()["Arn"])
            tell(event, "SUCCESS")
    """
    made = template(stacks, "told", body, resource=release("demo", archive=PLACE, Wait=True, **PIN))

    assert stacks.deploy("create", "told", made) == "CREATE_COMPLETE", stacks.events("told")
    lines = stacks.log("/told")
    assert "Create Custom::HoldfastHelmRelease true None" in lines
    assert any("assumed-role/" in line and line.endswith("/told") for line in lines)
    assert any(line.startswith("INIT_START Runtime Version: python3.14 (here") for line in lines)

    made["Custom"]["Properties"]["Wait"] = "false"
    assert stacks.deploy("update", "told", made) == "UPDATE_COMPLETE", stacks.events("told")
    assert "Update Custom::HoldfastHelmRelease false kube-system/demo" in stacks.log("/told")


def test_a_stack_that_goes_has_its_function_uninstall(stacks: Stacks) -> None:
    body = """
        def on_event(event, context):
            boto3.client("s3").put_object(Bucket="assets", Key=f"said/{event['RequestType']}", Body=b"")
            tell(event, "SUCCESS")
    """
    made = template(stacks, "going", body, resource=release("demo", archive=PLACE, **PIN))
    may = {"Effect": "Allow", "Action": "s3:PutObject", "Resource": "arn:aws:s3:::assets/said/*"}
    made["Role"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"].append(may)

    assert stacks.deploy("create", "going", made) == "CREATE_COMPLETE", stacks.events("going")
    assert stacks.delete("going") == "DELETE_COMPLETE"

    said = stacks.client("s3").list_objects_v2(Bucket="assets", Prefix="said/")["Contents"]
    assert [each["Key"] for each in said] == ["said/Create", "said/Delete"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("tell(event, 'FAILED', Reason='no chart')", "Message returned: no chart"),
        ("pass", "did not receive a response from your custom resource"),
        ("raise ValueError('bad')", "ValueError: bad"),
        ("time.sleep(30)", "it timed out"),
        ("tell(event, 'SUCCESS', Data={'a': 'b' * 5000})", "Response object is too long."),
        ("tell(event, 'DONE')", "Value of property Status must be SUCCESS or FAILED"),
        ("boto3.client('s3').get_object(Bucket='assets', Key='denied')", "not authorized to perform: s3:GetObject"),
    ],
    ids=["failed", "silent", "raised", "late", "long", "unknown", "no-right"],
)
def test_a_function_that_fails_fails_its_stack_with_its_words(stacks: Stacks, body: str, why: str) -> None:
    name = f"bad-{abs(hash(body))}"
    code = f"""
        def on_event(event, context):
            if event["RequestType"] == "Delete":
                return tell(event, "SUCCESS")
            {body}
    """
    timeout_s = 4 if "sleep" in body else 20
    made = template(stacks, name, code, resource=release("demo", archive=PLACE, **PIN), Timeout=timeout_s)

    assert stacks.deploy("create", name, made) == "ROLLBACK_COMPLETE"

    assert why in stacks.events(name)["Custom CREATE_FAILED"]


@pytest.mark.parametrize("body", ["x = (", ""], ids=["no-python", "no-handler"])
def test_a_function_that_cannot_even_begin_leaves_a_stack_that_says_so(stacks: Stacks, body: str) -> None:
    name = f"none-{len(body)}"
    made = template(stacks, name, body, resource=release("demo", archive=PLACE, **PIN), Timeout=20)

    assert stacks.deploy("create", name, made) == "ROLLBACK_FAILED"  # it cannot delete, either: so it is on AWS

    assert "did not receive a response" in stacks.events(name)["Custom CREATE_FAILED"]


def test_code_that_is_gone_fails_the_resource_and_not_its_rollback(stacks: Stacks) -> None:
    made = template(stacks, "gone", "", resource=release("demo", archive=PLACE, **PIN))
    stacks.client("s3").delete_object(Bucket=BUCKET, Key="gone.zip")

    assert stacks.deploy("create", "gone", made) == "ROLLBACK_COMPLETE"

    assert "s3://assets/gone.zip cannot be read" in stacks.events("gone")["Custom CREATE_FAILED"]


def test_a_function_that_is_interrupted_by_another_failure_is_asked_to_delete(stacks: Stacks) -> None:
    body = """
        def on_event(event, context):
            boto3.client("s3").put_object(Bucket="assets", Key=f"cut/{event['RequestType']}", Body=b"")
            if event["RequestType"] == "Create":
                time.sleep(60)
            tell(event, "SUCCESS")
    """
    made = template(stacks, "cut", body, resource=release("demo", archive=PLACE, **PIN), Timeout=90)
    may = {"Effect": "Allow", "Action": "s3:PutObject", "Resource": "arn:aws:s3:::assets/cut/*"}
    made["Role"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"].append(may)
    late = release("late", archive={"Bucket": BUCKET, "Key": "none"}, **PIN)
    late["Properties"]["TreeSha256"] = "wrong"
    made["Waits"] = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "cut-waits"}, "DependsOn": ["Function"]}
    made["Late"] = {**late, "DependsOn": ["Waits"]}
    began = time.monotonic()

    assert stacks.deploy("create", "cut", made) == "ROLLBACK_COMPLETE", stacks.events("cut")

    assert time.monotonic() - began < 50
    assert stacks.events("cut")["Custom CREATE_FAILED"] == "Resource creation cancelled"
    assert "Custom DELETE_COMPLETE" in stacks.events("cut")


def test_an_archive_that_cannot_be_reached_is_skipped_and_the_event_says_so(stacks: Stacks) -> None:
    body = "def on_event(event, context): tell(event, 'FAILED', Reason='must not be asked')"
    nowhere = {"Url": f"https://127.0.0.1:1/a/tar.gz/{'a' * 40}"}
    made = template(stacks, "skipped", body, resource=release("demo", archive=nowhere, **PIN))

    assert stacks.deploy("create", "skipped", made) == "CREATE_COMPLETE", stacks.events("skipped")

    said = stacks.events("skipped")["Custom CREATE_COMPLETE"]
    assert said.startswith("release demo is not installed: 127.0.0.1 is not reachable from here (Connection refused)")
    assert stacks.delete("skipped") == "DELETE_COMPLETE"


def test_nodes_are_waited_for_by_the_function(stacks: Stacks) -> None:
    body = """
        def on_event(event, context):
            asked = event["ResourceProperties"]["ClusterName"]
            tell(event, "FAILED", Reason=event["ResourceType"] + " asked for " + asked)
    """
    token = {"Fn::GetAtt": ["Function", "Arn"]}
    nodes = {
        "Type": "Custom::HoldfastNodes",
        "Properties": {"ServiceToken": token, "ClusterName": "p5", "Last": "true"},
    }

    assert stacks.deploy("create", "nodes", template(stacks, "nodes", body, resource=nodes)) == "ROLLBACK_COMPLETE"

    assert "Custom::HoldfastNodes asked for p5" in stacks.events("nodes")["Custom CREATE_FAILED"]


def test_a_function_that_is_installed_in_no_stack_is_not_run(stacks: Stacks) -> None:
    resource = release("demo", archive=PLACE, **PIN)
    resource["Properties"]["ServiceToken"] = "arn:aws:lambda:us-west-2:123456789012:function:elsewhere"

    assert stacks.deploy("create", "foreign", {"Custom": resource}) == "CREATE_COMPLETE"  # a record, as ever


def test_answers_are_taken_once_and_by_their_secret_alone() -> None:
    with Answers() as answers:
        base = answers.url.rsplit("/", 1)[0]
        body = json.dumps({"Status": "SUCCESS"}).encode()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(urllib.request.Request(f"{base}/guess", data=body, method="PUT"), timeout=5)
        urllib.request.urlopen(urllib.request.Request(answers.url, data=body, method="PUT"), timeout=5).close()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(urllib.request.Request(answers.url, data=body, method="PUT"), timeout=5)
    assert answers.answer == {"Status": "SUCCESS"}
