"""The stand-in for docker: what it refuses, and that equal sources make equal images."""

import json
from pathlib import Path

import pytest

from holdfast.localcloud.docker_stand_in import ManifestStore, StandInError, check, instructions, main, manifest_of

IMAGE = "123456789012.dkr.ecr.us-west-2.amazonaws.com/training:abc"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def context(tmp_path: Path) -> Path:
    folder = tmp_path / "context"
    (folder / "common").mkdir(parents=True)
    (folder / "common" / "code.py").write_text("1\n")
    (folder / "Dockerfile").write_text("FROM scratch\nCOPY common /common\n")
    return folder


def built(context: Path, *more: str) -> int:
    return main(["build", *more, "--tag", "one", "--platform", "linux/amd64", str(context)])


def test_instructions_are_joined_and_comments_and_here_documents_left_out() -> None:
    text = "# syntax\nFROM a AS b\n\nRUN one \\\n  # why\n  two\nRUN <<EOF\nFROM nowhere\nEOF\nCOPY --chown=1 x y\n"

    assert [(one.number, one.name, one.words, one.flags) for one in instructions(text)] == [
        (2, "FROM", ("a", "AS", "b"), ()),
        (4, "RUN", ("one", "two"), ()),
        (7, "RUN", ("<<EOF",), ()),
        (10, "COPY", ("x", "y"), ("--chown=1",)),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ARG BASE\nFROM $BASE\n", "line 2: no base image: $BASE; give it with --build-arg"),
        ("FROM a\nCOPY common absent /x/\n", "line 2: absent is not in the build context"),
        ('FROM a\nCOPY ["gone", "/x"]\n', "line 2: gone is not in the build context"),
        ("FROM a\nADD common/*.txt /x/\n", "line 2: common/*.txt is not in the build context"),
    ],
)
def test_a_dockerfile_that_no_build_could_use_is_refused(context: Path, text: str, problem: str) -> None:
    with pytest.raises(StandInError) as caught:
        check(text, context=context, arguments={})

    assert str(caught.value) == f"this Dockerfile cannot be built: {problem}"


@pytest.mark.parametrize(
    "text",
    [
        "ARG BASE=a\nFROM ${BASE}\nCOPY . /x\n",
        "FROM a AS b\nCOPY --from=b /anything /x\nADD https://example.com/file /x\n",
        "FROM a\nARG WHAT\nCOPY $WHAT /x\nCOPY common/c*.py /x/\n",
    ],
)
def test_a_dockerfile_whose_sources_are_there_passes(context: Path, text: str) -> None:
    check(text, context=context, arguments={})


def test_the_digest_is_of_all_that_a_build_reads(context: Path) -> None:
    def manifest(**settings: object) -> str:
        return manifest_of(context=context, dockerfile=context / "Dockerfile", settings=settings)

    first = manifest()
    assert manifest() == first
    seen = {first, manifest(arguments={"A": "1"})}
    for name in ("Dockerfile", "common/code.py", "common/new.py"):
        (context / name).write_text(f"{name} changed\n")
        seen.add(manifest())

    assert len(seen) == 5
    assert "nothing was built" in json.loads(first)["annotations"]["holdfast.stand-in"]


def test_an_image_is_there_once_it_is_built_and_under_each_of_its_tags(
    context: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", "one"]) == 1
    assert built(context, "--build-arg", "A=1", "--file", "Dockerfile") == 0
    assert "nothing was built" in capsys.readouterr().err
    assert main(["inspect", "one"]) == 0

    assert main(["tag", "one", IMAGE]) == 0
    assert main(["images", "--format", "{{.Repository}}:{{.Tag}}", "--filter", "reference=*/*:abc"]) == 0
    assert capsys.readouterr().out == f"{IMAGE}\n"


def test_the_state_is_in_the_home_of_the_local_cloud(context: Path, home: Path) -> None:
    built(context)

    assert ManifestStore(home / "docker-stand-in").tags() == ["one"]


@pytest.mark.parametrize("endpoint", ["", "https://api.ecr.us-west-2.amazonaws.com", "http://10.0.0.1:5710"])
def test_an_image_that_was_not_built_is_never_pushed_to_aws(
    context: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], endpoint: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    built(context)
    main(["tag", "one", IMAGE])

    assert main(["push", IMAGE]) == 1
    assert f"got AWS_ENDPOINT_URL '{endpoint}'; allowed: the embedded AWS on this machine" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["push", "absent"], "no image absent on this machine"),
        (["tag", "absent", "two"], "no image absent on this machine"),
        (["build", "--tag", "one", "--file", "gone", "."], "no Dockerfile"),
    ],
)
def test_what_is_not_there_is_said(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    assert main(arguments) == 1
    assert message in capsys.readouterr().err


def test_only_repositories_of_ecr_are_pushed_to(context: Path, capsys: pytest.CaptureFixture[str]) -> None:
    built(context)

    assert main(["push", "one"]) == 1
    assert "allowed: a repository of ECR" in capsys.readouterr().err
