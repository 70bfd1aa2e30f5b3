"""What is said where nodes cannot run."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from holdfast.localcloud.nodes import Fleet, NodeError


def test_rejects_another_system(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert Fleet.check_host() == [
        "nodes are Linux namespaces and this is darwin; use a Linux machine or virtual machine"
    ]


def test_rejects_other_users_than_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert Fleet.check_host() == ["namespaces and mounts need root; run as root or with sudo"]
    with pytest.raises(NodeError, match="nodes can only be removed by root; use sudo"):
        Fleet(home=tmp_path).close()


def test_names_missing_programs_and_their_packages(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name, path: None if name == "ip" else f"/usr/bin/{name}")
    assert "the program ip is missing; install the package iproute2" in Fleet.check_host()


def test_rejects_a_gateway_outside_the_network(tmp_path: Path):
    with pytest.raises(NodeError, match=r"gateway must be in 10.1.0.0/16, got 10.2.0.1"):
        Fleet(home=tmp_path).open(network="10.1.0.0/16", gateway="10.2.0.1")
    with pytest.raises(NodeError, match=r"network must be like 10.1.0.0/16 and gateway an address in it: "):
        Fleet(home=tmp_path).open(network="10.1.0.0/33", gateway="10.1.0.1")
