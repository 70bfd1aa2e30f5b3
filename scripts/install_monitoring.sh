#!/usr/bin/env bash
# Install the Debian packages given as arguments, unless Prometheus's programs are here already; no daemon is started.
# Without root or apt it only says so: the tests that need them are skipped, and say why.
set -euo pipefail
# shellcheck source=scripts/apt.sh
. "$(dirname "$0")/apt.sh"

missing=()
for program in prometheus promtool prometheus-alertmanager; do
  command -v "$program" >/dev/null || missing+=("$program")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if ! can_install; then
  echo "note: not installed: ${missing[*]}; tests of metrics and alert rules are skipped (packages: $*)" >&2
  exit 0
fi

apt_install Prometheus "$@"
