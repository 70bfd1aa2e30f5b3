"""Unit files, exec lines, restart rules and /etc/fstab as the nodes' systemctl reads them."""

import signal
from pathlib import Path

import pytest

from holdfast.localcloud.image.node.systemctl import enable, manager, restart
from holdfast.localcloud.image.node.systemctl.units import (
    INFINITY,
    Root,
    Unit,
    UnitError,
    assignments,
    commands,
    environment_file,
    escape_path,
    generate,
    limit,
    met,
    parse_into,
    seconds,
    unescape,
    where_of,
    words,
)


def unit(text: str, name: str = "x.service") -> Unit:
    found = Unit(name=name, host="ip-10-1-0-12")
    parse_into(found.sections, text)
    return found


def place(root: Path, path: str, text: str) -> None:
    (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
    (root / path[1:]).write_text(text)


def test_comments_and_continuations_are_read_as_systemd_does():
    found = unit("[Unit]\n# no\n; no\nDescription=one \\\n# in between\n  two\nAfter=a b\nAfter=c\n")
    assert found.description == "one  two"
    assert found.names("Unit", "After") == ["a", "b", "c"]


def test_an_empty_value_resets_a_list():
    found = unit("[Service]\nExecStart=/bin/a\nExecStart=\nExecStart=/bin/b\n")
    assert [c.argv for c in commands(found, "ExecStart")] == [("/bin/b",)]


def test_the_last_value_counts_for_a_single_setting():
    assert unit("[Service]\nUser=a\nUser=b\n").one("Service", "User") == "b"


def test_words_keep_quotes_together():
    assert words('a "b c" \'d\' "" e\\sf') == ["a", "b c", "d", "", "e f"]


def test_an_open_quote_is_an_error():
    with pytest.raises(UnitError, match="unbalanced quotes"):
        words('a "b')


@pytest.mark.parametrize(
    ("specifier", "means"),
    [("%n", "getty@tty-1.service"), ("%N", "getty@tty-1"), ("%p", "getty"), ("%i", "tty-1"), ("%I", "tty/1"),
     ("%t", "/run"), ("%H", "ip-10-1-0-12"), ("100%%", "100%")],
)  # fmt: skip
def test_specifiers(specifier: str, means: str):
    assert unit("", name="getty@tty-1.service").resolve(specifier) == means


def test_an_unknown_specifier_is_an_error():
    with pytest.raises(UnitError, match="specifiers"):
        unit("").resolve("%q")


def test_a_variable_alone_splits_and_one_in_braces_does_not():
    found = commands(unit("[Service]\nExecStart=/bin/a $OPTIONS x${OPTIONS}y $NONE ${NONE} $$HOME\n"), "ExecStart")
    environment = {"OPTIONS": "-a  'b c'"}
    assert found[0].expand(environment) == ["/bin/a", "-a", "b c", "x-a  'b c'y", "", "$HOME"]


def test_prefixes_of_a_command():
    found = commands(unit("[Service]\nExecStart=-+/bin/a b ; @/bin/c name d\n"), "ExecStart")
    assert (found[0].ignore_failure, found[0].privileged, found[0].argv) == (True, True, ("/bin/a", "b"))
    assert (found[1].name, found[1].argv) == ("name", ("/bin/c", "d"))


def test_environment_and_its_files():
    found = unit('[Service]\nEnvironment="A=1 2" B=3\nEnvironment=C=\n')
    assert assignments(found) == {"A": "1 2", "B": "3", "C": ""}
    assert environment_file("# no\nA='x y'\nB = z\nbroken\n") == {"A": "x y", "B": "z"}


@pytest.mark.parametrize(
    ("text", "means"), [("90", 90), ("1min 20s", 80), ("500ms", 0.5), ("2h", 7200), ("infinity", INFINITY)]
)
def test_time_spans(text: str, means: float):
    assert seconds(text) == means


def test_a_time_span_that_is_none_is_an_error():
    with pytest.raises(UnitError, match="not a time span"):
        seconds("soon")


def test_limits():
    assert limit("1024:524288") == (1024, 524288)
    assert limit("infinity") == (-1, -1)
    assert limit("8M") == (8 << 20, 8 << 20)


@pytest.mark.parametrize(
    ("policy", "status", "again"),
    [
        ("no", 1, False),
        ("on-failure", 0, False),
        ("on-failure", 1, True),
        ("on-failure", -signal.SIGTERM, False),
        ("on-failure", -signal.SIGKILL, True),
        ("on-abnormal", 1, False),
        ("on-abnormal", -signal.SIGKILL, True),
        ("on-abort", -signal.SIGSEGV, True),
        ("on-success", 0, True),
        ("on-success", -signal.SIGKILL, False),
        ("always", 0, True),
    ],
)
def test_restart_follows_the_table_of_systemd_service(policy: str, status: int, *, again: bool):
    found = unit(f"[Service]\nExecStart=/bin/a\nRestart={policy}\n")
    assert restart.should_restart(found, result=restart.result_of(found, status), status=status) == again


def test_lists_of_exit_statuses_go_over_the_policy():
    found = unit("[Service]\nExecStart=/bin/a\nRestart=always\nRestartPreventExitStatus=255 SIGKILL\n")
    assert not restart.should_restart(found, result="exit-code", status=255)
    assert not restart.should_restart(found, result="signal", status=-9)
    forced = unit("[Service]\nExecStart=/bin/a\nRestartForceExitStatus=7\nSuccessExitStatus=7 SIGUSR1\n")
    assert restart.result_of(forced, 7) == restart.result_of(forced, -signal.SIGUSR1) == "success"
    assert restart.should_restart(forced, result="success", status=7)


def test_the_start_limit_counts_starts_of_the_interval():
    assert restart.allowed(starts=[0, 9], now=10, interval=10, burst=2)
    assert not restart.allowed(starts=[1, 9], now=10, interval=10, burst=2)


def test_paths_become_unit_names_and_back():
    assert escape_path("/opt/dlami-nvme/.x") == "opt-dlami\\x2dnvme-.x"
    assert escape_path("/") == "-"
    assert unescape("opt-dlami\\x2dnvme") == "opt/dlami-nvme"


def test_etc_goes_over_lib_and_drop_ins_go_over_both(tmp_path: Path):
    place(tmp_path, "/lib/systemd/system/a.service", "[Service]\nExecStart=/bin/lib\n")
    assert Root(str(tmp_path)).load("a").one("Service", "ExecStart") == "/bin/lib"
    place(tmp_path, "/etc/systemd/system/a.service", "[Service]\nExecStart=/bin/etc\n")
    place(tmp_path, "/lib/systemd/system/a.service.d/z.conf", "[Service]\nUser=z\n")
    place(tmp_path, "/etc/systemd/system/a.service.d/b.conf", "[Service]\nExecStart=\nExecStart=/bin/c\nUser=b\n")
    found = Root(str(tmp_path)).load("a.service")
    assert (found.raw("Service", "ExecStart"), found.one("Service", "User")) == (["/bin/c"], "z")
    assert [path.rpartition("/")[2] for path in found.drop_ins] == ["b.conf", "z.conf"]


def test_masks_aliases_templates_and_broken_units_are_told_apart(tmp_path: Path):
    root = Root(str(tmp_path))
    place(tmp_path, "/lib/systemd/system/ssh.service", "[Service]\nExecStart=/bin/a\n[Install]\nAlias=sshd.service\n")
    place(tmp_path, "/lib/systemd/system/t@.service", "[Service]\nExecStart=/bin/a %i\n")
    place(tmp_path, "/lib/systemd/system/none.service", "[Service]\nUser=a\n")
    place(tmp_path, "/lib/systemd/system/two.service", "[Service]\nExecStart=/bin/a\nExecStart=/bin/b\n")
    assert enable.enable(root, "ssh.service")[0].startswith("Created symlink /etc/systemd/system/sshd.service")
    assert root.load("sshd").name == "ssh.service"
    assert commands(root.load("t@x"), "ExecStart")[0].argv == ("/bin/a", "x")
    assert root.load("none").load_state == root.load("two").load_state == "bad-setting"
    assert root.load("other").load_state == "not-found"
    enable.mask(root, "t@x.service")
    assert root.load("t@x").load_state == "masked"
    assert enable.unmask(root, "t@x.service")
    assert root.load("t@x").load_state == "loaded"


def test_enabling_links_the_unit_and_disabling_takes_every_link_away(tmp_path: Path):
    root = Root(str(tmp_path))
    text = "[Service]\nExecStart=/bin/a\n[Install]\nWantedBy=multi-user.target\nAlias=b.service\n"
    place(tmp_path, "/lib/systemd/system/a.service", text)
    assert enable.state(root, "a.service") == "disabled"
    enable.enable(root, "a.service")
    assert (tmp_path / "etc/systemd/system/multi-user.target.wants/a.service").is_symlink()
    assert enable.state(root, "a.service") == "enabled"
    assert enable.state(root, "b.service") == "alias"
    assert enable.enable(root, "a.service") == []
    assert len(enable.disable(root, "a.service")) == 2
    assert enable.state(root, "a.service") == "disabled"


def test_units_start_in_the_order_of_after_and_before():
    units = {
        "a.service": unit("[Unit]\nAfter=b.service\n", name="a.service"),
        "b.service": unit("", name="b.service"),
        "c.service": unit("[Unit]\nBefore=b.service\n", name="c.service"),
    }
    assert [one.name for one in manager.in_order(units, last="a.service")] == ["c.service", "b.service", "a.service"]


def test_a_circle_of_after_ends(tmp_path: Path):
    units = {
        "a.service": unit("[Unit]\nAfter=b.service\n", name="a.service"),
        "b.service": unit("[Unit]\nAfter=a.service\n", name="b.service"),
    }
    assert {one.name for one in manager.in_order(units, last="a.service")} == set(units)


def test_fstab_becomes_mount_and_automount_units(tmp_path: Path):
    place(
        tmp_path,
        "/etc/fstab",
        "# no\nfs@tcp:/x /fsx lustre noatime,_netdev,x-systemd.automount 0 0\n/dev/x /data ext4\n",
    )
    root = Root(str(tmp_path))
    generate(root)
    generate(root)
    assert where_of(root.load("fsx.automount")) == "/fsx"
    assert root.load("fsx.mount").one("Mount", "What") == "fs@tcp:/x"
    assert root.linked("remote-fs.target", "requires") == ["fsx.automount"]
    assert root.linked("local-fs.target", "requires") == ["data.mount"]
    assert root.load("/fsx").name == "fsx.mount"
    assert enable.state(root, "fsx.automount") == "generated"


def test_conditions_skip_and_assertions_raise(tmp_path: Path):
    root = Root(str(tmp_path))
    place(tmp_path, "/there", "x")
    assert met(root, unit("[Unit]\nConditionPathExists=/there\nConditionPathExists=!/not\n"))
    assert not met(root, unit("[Unit]\nConditionPathExists=/not\n"))
    assert met(root, unit("[Unit]\nConditionPathExists=|/not\nConditionPathExists=|/there\n"))
    with pytest.raises(UnitError, match="Assertion failed"):
        met(root, unit("[Unit]\nAssertPathExists=/not\n"))
