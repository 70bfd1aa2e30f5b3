#!/usr/bin/env bash
# Install the Debian packages given as arguments, unless their programs are here already.
# Without root or apt it only says so: everything but the local HyperPod works without Slurm.
set -euo pipefail

PATH="$PATH:/usr/sbin:/sbin"
missing=()
for program in slurmctld slurmd slurmdbd sbatch munged mariadbd mariadb ip nsenter \
  sshd ssh-keygen sudo jq curl rsync expect apg envsubst unzip gcc runc iptables; do
  command -v "$program" >/dev/null || missing+=("$program")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "note: not installed: ${missing[*]}; the local HyperPod needs them (packages: $*)" >&2
  exit 0
fi

echo "installing Slurm"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# A policy that starts no daemon: the local HyperPod starts its own inside its nodes.
install_quietly() {
  apt-get update -qq &&
    DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "$@"
}
if ! install_quietly "$@" >"$log" 2>&1; then
  tail -n 5 "$log" >&2
  echo "apt-get could not install: $*" >&2
  exit 1
fi
