#!/bin/bash
# HyperPod runs this as root on every new node of mode extension, after its own configuration has started Slurm there.
# It finds a Python and hands over to holdfast_lifecycle beside it.
set -u

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd) || exit 1

for python in "${HOLDFAST_PYTHON:-}" python3 /usr/bin/python3; do
    if [ -n "$python" ] && command -v "$python" >/dev/null 2>&1; then
        # -S: no site-packages are needed, and looking for them takes as long as the steps.
        PYTHONPATH="$here" exec "$python" -S -m holdfast_lifecycle --config "$here/config.json" --hook OnInitComplete "$@"
    fi
done

echo "on_init_complete.sh: python3 not found in PATH ($PATH) nor at /usr/bin/python3" >&2
echo "on_init_complete.sh: choose a HyperPod AMI, which has it, or set HOLDFAST_PYTHON" >&2
exit 1
