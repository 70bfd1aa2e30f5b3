#!/usr/bin/env bash
# Make the virtual environment FOLDER, unless it is whole: `make_environment.sh FOLDER`.
# One that was cut off, or that was made with another version of Python, is made again. FOLDER/.made is as old as it.
set -euo pipefail
# shellcheck source=scripts/apt.sh
. "$(dirname "$0")/apt.sh"

folder=$1

refuse() {
  echo "$*" >&2
  exit 1
}

is_whole() {
  local made_with
  made_with=$(sed -nE 's/^version(_info)? *= *([0-9]+\.[0-9]+).*/\2/p' "$folder/pyvenv.cfg" 2>/dev/null) || return 1
  "$folder/bin/python" -c '
import sys, pip
sys.exit(sys.version_info < (3, 11) or "%d.%d" % sys.version_info[:2] != sys.argv[1])' "$made_with" 2>/dev/null
}

find_python() {
  local name
  for name in python3 python3.14 python3.13 python3.12 python3.11; do
    "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$name" && return
  done
  return 1
}

refuse_python() {
  local found system="" release=${OS_RELEASE:-/etc/os-release}
  found=$(python3 -c 'import platform; print(platform.python_version())' 2>/dev/null || echo "none")
  # shellcheck source=/dev/null
  [ ! -r "$release" ] || system=$(. "$release" && echo "${ID:-} ${VERSION_ID:-}")
  [ "$system" != "ubuntu 22.04" ] || refuse "got Ubuntu 22.04 with Python $found and Slurm 21.08; allowed: Python 3.11" \
    "and Slurm 22.05 or newer; use Ubuntu 24.04, Debian 12 or Debian 13"
  refuse "got Python $found; allowed: Python 3.11 or newer; install it as python3 or, beside yours, as python3.11"
}

if is_whole; then
  # One of before this stamp is as old as what was installed into it, so that this is not done again.
  [ -e "$folder/.made" ] || touch -r "$folder/.installed" "$folder/.made" 2>/dev/null || touch "$folder/.made"
  exit 0
fi

python=$(find_python) || refuse_python
if [ -L "$folder" ]; then
  refuse "$folder is a link to $(readlink "$folder"), which is no whole environment of Python 3.11 or newer;" \
    "remove the link and run make again"
fi
if [ -e "$folder" ]; then
  [ -e "$folder/pyvenv.cfg" ] || rmdir "$folder" 2>/dev/null ||
    refuse "$folder is no virtual environment, and one is to be made there; move it away and run make again"
  echo "making $folder again: it was cut off, or made with another version of Python"
  rm -rf "$folder"
fi
makes_environments() {
  "$python" -c 'import ensurepip, venv' 2>/dev/null
}
if ! makes_environments; then
  package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
  ! can_install || apt_install "$package" "$package" || exit 1
  makes_environments || refuse "$(command -v "$python") makes no virtual environments: it lacks ensurepip, which is in" \
    "Debian's package $package; install it and run make again"
fi
"$python" -m venv "$folder"
touch "$folder/.made"
