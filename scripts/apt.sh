# shellcheck shell=bash
# Debian's packages for the scripts beside this file, which source it.

can_install() {
  [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null
}

# Fetch the lists of packages, once; what apt says is in $apt_log.
apt_lists() {
  [ -z "${apt_log:-}" ] || return 0
  apt_log=$(mktemp)
  trap 'rm -f "$apt_log"' EXIT
  export LC_ALL=C DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
  apt-get update -q >"$apt_log" 2>&1 || true # one mirror of several may be down
}

# Install packages: WHAT PACKAGE... No daemon is started: the local HyperPod starts its own inside its nodes.
# What is downloaded is said first, and a failure in one sentence.
apt_install() {
  local what=$1 size why
  shift
  apt_lists
  size=$(apt-get install -qq --print-uris --no-install-recommends "$@" 2>/dev/null |
    awk '{ sum += $3 } END { if (sum) printf ": %.1f MB to download", sum / 1e6 }')
  echo "installing $what$size"
  apt-get install -y -q --no-install-recommends "$@" >>"$apt_log" 2>&1 && return
  # Without a network the cause stands in a warning of the update, and what follows from it in the error.
  why=$(grep -hE "^[EW]: .*(Could not|Temporary failure|[Uu]nreachable|Connection)" "$apt_log" | tail -n 1)
  why=${why:-$(grep -h "^E: " "$apt_log" | head -n 1)}
  echo "apt-get could not install $what: ${why:-it ended without a word}; fix this and run make again" >&2
  return 1
}
