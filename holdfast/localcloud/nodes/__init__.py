"""
Virtual instances: whole machines made of Linux namespaces, for a HyperPod cluster on one computer.

A node has its own processes, network, mounts, host name and IPC over an overlay of the machine's root, which it
can read and never write. Accounts, keys, home directories and logs of the machine are not in it. There is no name
service and no way out of the nodes' network except what ``Fleet.listen`` and ``forward`` carry.

    fleet = Fleet(home=Path("/var/lib/holdfast"))
    fleet.open(network="10.1.0.0/16", gateway="10.1.255.254")
    spec = NodeSpec(instance_id="i-0a1", hostname="ip-10-1-0-12", address="10.1.0.12",
                    mounts=python_mounts(at="/opt/holdfast/env"))
    node = fleet.boot(spec)                       # parallel from several threads
    node.run(["hostname"], timeout_s=5).stdout    # also popen, exec_tty; user=, env=, cwd=, login=
    node.freeze(), node.thaw(), node.cut(), node.heal()
    node.destroy()                                # power off; node.read_file still gives what it wrote
    fleet.boot(spec, keep_root=True)              # reboot;  without keep_root: a fresh root
    forward(fleet.listen("10.1.255.254", 5710), ("127.0.0.1", 5710))
    fleet.close()                                 # nothing is left, whoever crashed before

Nodes outlive the process that booted them. Any process finds them again through ``Fleet(home=...)``, because the
records lie on the tmpfs ``home/nodes`` beside what the nodes write. What a node *does* is for others: this
package starts no daemon in it and knows neither Slurm nor AWS.
"""

from ._census import census
from ._fabric import METADATA_ADDRESS
from ._fleet import Fleet
from ._forward import Forwarder, forward
from ._node import Node, kill_group
from ._root import REACHABLE, REACHABLE_NFS, UBUNTU_UID, python_mounts
from ._spec import FileSpec, Mount, NodeError, NodeSpec

__all__ = [
    "METADATA_ADDRESS",
    "REACHABLE",
    "REACHABLE_NFS",
    "UBUNTU_UID",
    "FileSpec",
    "Fleet",
    "Forwarder",
    "Mount",
    "Node",
    "NodeError",
    "NodeSpec",
    "census",
    "forward",
    "kill_group",
    "python_mounts",
]
