"""
Virtual instances: machines made of Linux namespaces, for a HyperPod cluster on one computer.

A node has its own processes, network, mounts, host name and IPC over a read-only overlay of the machine's root, without
the machine's accounts, keys, home directories and logs. There is no name service, and no route out of the nodes'
network except sockets of ``Fleet.listen``.

    fleet = Fleet(home=Path("/var/lib/holdfast"))
    fleet.open(network="10.1.0.0/16", gateway="10.1.255.254")
    spec = NodeSpec(instance_id="i-0a1", hostname="ip-10-1-0-12", address="10.1.0.12",
                    mounts=python_mounts(at="/opt/holdfast/env"))
    node = fleet.boot(spec)                       # parallel from several threads
    node.run(["hostname"], timeout_s=5).stdout    # also popen, exec_tty; user=, env=, cwd=, login=
    node.freeze(), node.thaw(), node.cut(), node.heal()
    node.destroy()                                # power off; node.read_file still works
    fleet.boot(spec, keep_root=True)              # reboot;  without keep_root: a fresh root
    fleet.listen("10.1.255.254", 5710)            # a listening socket of the machine inside the nodes' network
    fleet.close()                                 # removes everything, also after crashes

Nodes outlive the process that booted them; records are on the tmpfs ``home/nodes``, for any process. This package
starts no daemon and depends on neither Slurm nor AWS.
"""

from holdfast.localcloud.nodes.fabric import link_name, mac_of
from holdfast.localcloud.nodes.lock import locked
from holdfast.localcloud.nodes.root import (
    Accounts,
    add_accounts,
    disk_mounts,
    emptied_directories,
    gshadow_for,
    hidden_names,
    hosts,
    name_services,
    root_contents,
    shadow_for,
    strip_accounts,
)
from holdfast.localcloud.nodes.spec import NodeRecord

from .fabric import METADATA_ADDRESS
from .fleet import Fleet
from .node import Node, kill_group
from .programs import ProgramQuery, census
from .root import JOBS_SHIPPING_LOCK, REACHABLE, REACHABLE_NFS, SHIPPING_LOCK, python_mounts
from .spec import FileSpec, Mount, NodeError, NodeSpec

__all__ = [
    "JOBS_SHIPPING_LOCK",
    "METADATA_ADDRESS",
    "REACHABLE",
    "REACHABLE_NFS",
    "SHIPPING_LOCK",
    "Accounts",
    "FileSpec",
    "Fleet",
    "Mount",
    "Node",
    "NodeError",
    "NodeRecord",
    "NodeSpec",
    "ProgramQuery",
    "add_accounts",
    "census",
    "disk_mounts",
    "emptied_directories",
    "gshadow_for",
    "hidden_names",
    "hosts",
    "kill_group",
    "link_name",
    "locked",
    "mac_of",
    "name_services",
    "python_mounts",
    "root_contents",
    "shadow_for",
    "strip_accounts",
]
