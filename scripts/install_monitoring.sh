#!/usr/bin/env bash
# Install the Debian packages given as arguments, unless Prometheus's programs are here already; no daemon is started.
# Without root or apt it only says so: the tests that need them are skipped, and say why.
set -euo pipefail

missing=()
for program in prometheus promtool prometheus-alertmanager; do
  command -v "$program" >/dev/null || missing+=("$program")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "note: not installed: ${missing[*]}; tests of metrics and alert rules are skipped (packages: $*)" >&2
  exit 0
fi

echo "installing Prometheus"
apt-get update -qq >/dev/null
DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "$@" >/dev/null
