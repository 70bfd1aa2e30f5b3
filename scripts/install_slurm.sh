#!/usr/bin/env bash
# Install the Debian packages given as arguments, unless their programs are here already.
# Without root or apt it only says so: everything but the local HyperPod works without Slurm. With FOR_CLUSTER set a
# cluster is to follow, and what it cannot run on is refused now, before anything is downloaded.
set -euo pipefail
# shellcheck source=scripts/apt.sh
. "$(dirname "$0")/apt.sh"

OLDEST=22.05
PATH="$PATH:/usr/sbin:/sbin"
SYS_ADMIN=21 # capabilities(7), CAP_SYS_ADMIN

refuse() {
  echo "$*" >&2
  exit 1
}

has_capability() { # NUMBER
  local mask
  mask=$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status)
  (((0x$mask >> $1) & 1))
}

# Daemons of Slurm that this machine runs for itself; those of local nodes have mounts of their own.
running_here() {
  local comm
  for comm in $(grep -lxsE 'slurmctld|slurmd|slurmdbd' /proc/[0-9]*/comm || true); do
    if [ "$(readlink "${comm%comm}ns/mnt")" = "$(readlink /proc/self/ns/mnt)" ]; then cat "$comm"; fi
  done | sort -u | paste -sd ' '
}

if [ -n "${FOR_CLUSTER:-}" ]; then
  [ "$(uname)" = Linux ] || refuse "got $(uname); allowed: Linux, since nodes are namespaces; use a Linux machine"
  [ "$(id -u)" -eq 0 ] || refuse "got user $(id -un); allowed: root, since nodes are namespaces and mounts; use sudo"
  has_capability $SYS_ADMIN || refuse "got a container without CAP_SYS_ADMIN; allowed: a machine, a virtual machine" \
    "or a container with --privileged, since nodes are namespaces and mounts; start one of them"
fi

running=$(running_here)
[ -z "$running" ] || echo "note: this machine runs Slurm itself ($running); it is left alone, local nodes have their own"

missing=()
for program in slurmctld slurmd slurmdbd sbatch munged mariadbd mariadb ip nsenter pkill \
  sshd ssh-keygen sudo jq curl rsync expect apg envsubst unzip gcc runc iptables unsquashfs; do
  command -v "$program" >/dev/null || missing+=("$program")
done
# Of another distribution, and without apt, a cluster is up without MPI.
if can_install; then
  command -v mpirun >/dev/null || missing+=(mpirun)
  dpkg -s libpmix-dev >/dev/null 2>&1 || missing+=(libpmix-dev)
fi
[ ${#missing[@]} -eq 0 ] && exit 0

if ! can_install; then
  said="not installed: ${missing[*]}; the local HyperPod needs them (Debian's packages: $*)"
  [ -z "${FOR_CLUSTER:-}" ] || refuse "$said; install them and run make again"
  echo "note: $said" >&2
  exit 0
fi

apt_lists
offered=$(apt-cache policy slurmctld | sed -nE 's/^ *Candidate: ([0-9]+\.[0-9.]*[0-9]).*/\1/p')
[ -z "$offered" ] || dpkg --compare-versions "$offered" ge $OLDEST || refuse "got Slurm $offered in this machine's" \
  "packages; allowed: Slurm $OLDEST or newer; use Ubuntu 24.04, Debian 12 or Debian 13"

# An upgrade would restart what others use.
if [ -n "$running" ]; then
  replaced=$(apt-get install -s --no-install-recommends "$@" 2>/dev/null |
    sed -nE 's/^Inst ((slurm|libslurm|munge|mariadb)[^ ]*) \[.*/\1/p' | paste -sd ' ')
  [ -z "$replaced" ] || refuse "not installed: ${missing[*]}; with them apt would replace $replaced, which this" \
    "machine uses; upgrade these first, or install what is missing in their version"
fi

apt_install Slurm "$@" || exit 1
