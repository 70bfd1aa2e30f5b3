"""status, show, cat, list-units, list-unit-files."""

from __future__ import annotations

import time

from . import enable, records
from .children import descendants
from .journal import tail
from .units import Root, Unit


def properties(root: Root, name: str) -> dict[str, str]:
    """Return the properties of ``systemctl show`` that scripts read."""
    unit = root.load(name)
    record = records.read(root, unit.name)
    found = {
        "Id": unit.name,
        "Names": unit.name,
        "Description": unit.description,
        "LoadState": unit.load_state,
        "ActiveState": record["active"],
        "SubState": record["sub"],
        "FragmentPath": unit.path[len(root.prefix) :],
        "DropInPaths": " ".join(path[len(root.prefix) :] for path in unit.drop_ins),
        "UnitFileState": enable.state(root, unit.name),
        "NeedDaemonReload": "no",
        "ActiveEnterTimestamp": _stamp(record["entered"]),
        "StateChangeTimestamp": _stamp(record["since"]),
        "CanStart": "yes" if unit.load_state == "loaded" else "no",
        "CanReload": "yes" if unit.raw("Service", "ExecReload") else "no",
    }
    for key in ("After", "Before", "Requires", "Wants", "PartOf", "BindsTo"):
        found[key] = " ".join(unit.names("Unit", key))
    if unit.kind == "service":
        found |= {
            "Type": unit.type,
            "Restart": unit.one("Service", "Restart", "no"),
            "MainPID": str(record["main_pid"]),
            "ControlPID": "0",
            "ExecMainPID": str(record["exec_main_pid"]),
            "ExecMainCode": str(record["exec_main_code"]),
            "ExecMainStatus": str(record["exec_main_status"]),
            "Result": record["result"],
            "NRestarts": str(record["restarts"]),
            "StatusText": record["status_text"],
            "User": unit.one("Service", "User"),
            "Group": unit.one("Service", "Group"),
            "KillMode": unit.one("Service", "KillMode", "control-group"),
            "WorkingDirectory": unit.one("Service", "WorkingDirectory"),
            "Environment": " ".join(unit.names("Service", "Environment")),
        }
        for key in ("ExecStartPre", "ExecStart", "ExecStartPost", "ExecReload", "ExecStop"):
            if lines := unit.raw("Service", key):
                found[key] = " ; ".join(
                    f"{{ path={line.split()[0].lstrip('@-:+!')} ; argv[]={line} }}" for line in lines
                )
    return found


def _stamp(when: float) -> str:
    return time.strftime("%a %Y-%m-%d %H:%M:%S %Z", time.localtime(when)) if when else ""


def status(root: Root, name: str, *, lines: int) -> tuple[int, str]:
    """Return exit status and text of ``systemctl status``; LSB codes: 0 running, 3 not running, 4 unknown."""
    unit = root.load(name)
    record = records.read(root, unit.name)
    if unit.load_state == "not-found" and unit.name not in records.known(root) and record["active"] == "inactive":
        return 4, f"Unit {unit.name} could not be found."
    active = record["active"] in ("active", "reloading")
    dot = {"active": "●", "reloading": "●", "failed": "\u00d7"}.get(record["active"], "○")
    loaded = unit.load_state
    if unit.path:
        loaded += f" ({unit.path[len(root.prefix) :]}; {enable.state(root, unit.name)})"
    since = f" since {_stamp(record['since'])}" if record["since"] else ""
    detail = record["sub"] if record["active"] != "failed" else f"Result: {record['result']}"
    text = [f"{dot} {unit.name} - {unit.description}", f"     Loaded: {loaded}"]
    if unit.drop_ins:
        text.append(f"    Drop-In: {' '.join(path[len(root.prefix) :] for path in unit.drop_ins)}")
    text.append(f"     Active: {record['active']} ({detail}){since}")
    if record["main_pid"]:
        pid = record["main_pid"]
        text.append(f"   Main PID: {pid} ({_command(pid)})")
        text += [f"             ├─{one} {_command(one)}" for one in descendants(pid)[:20]]
    elif record["exec_main_pid"]:
        code = {1: "exited", 2: "killed", 3: "dumped"}.get(record["exec_main_code"], "exited")
        text.append(f"   Main PID: {record['exec_main_pid']} (code={code}, status={record['exec_main_status']})")
    if record["status_text"]:
        text.append(f'     Status: "{record["status_text"]}"')
    logged = tail(root, unit.name, lines) if lines else []
    return (0 if active else 3), "\n".join([*text, "", *logged] if logged else text)


def _command(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return "?"


def cat(unit: Unit, root: Root) -> str:
    parts = []
    for path in [unit.path, *unit.drop_ins]:
        with open(path, encoding="utf-8") as file:
            parts.append(f"# {path[len(root.prefix) :]}\n{file.read().rstrip()}")
    return "\n\n".join(parts)


def list_units(root: Root, *, everything: bool, kinds: list[str], states: list[str], legend: bool) -> str:
    names = set(records.known(root)) | set(records.AT_BOOT)
    if everything:
        names |= set(root.names())
    rows = []
    for name in sorted(names):
        record, unit = records.read(root, name), root.load(name)
        shown = everything or record["active"] not in ("inactive",)
        desired = not states or record["active"] in states or record["sub"] in states
        if shown and desired and (not kinds or unit.kind in kinds):
            rows.append([name, unit.load_state, record["active"], record["sub"], unit.description])
    text = _table([["UNIT", "LOAD", "ACTIVE", "SUB", "DESCRIPTION"], *rows] if legend else rows)
    return text + (f"\n\n{len(rows)} loaded units listed." if legend else "")


def list_unit_files(root: Root, *, kinds: list[str], states: list[str], legend: bool) -> str:
    rows = [[name, enable.state(root, name)] for name in root.names()]
    rows = [row for row in rows if not kinds or row[0].rpartition(".")[2] in kinds]
    rows = [row for row in rows if not states or row[1] in states]
    text = _table([["UNIT FILE", "STATE"], *rows] if legend else rows)
    return text + (f"\n\n{len(rows)} unit files listed." if legend else "")


def _table(rows: list[list[str]]) -> str:
    if not rows:
        return ""
    widths = [max(len(row[number]) for row in rows) for number in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(widths[number]) for number, cell in enumerate(row)).rstrip() for row in rows)
