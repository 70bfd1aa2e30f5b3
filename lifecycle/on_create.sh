#!/bin/bash
# HyperPod runs this as root on a new node where a group's LifeCycleConfig has OnCreate: on EKS, and in custom mode
# on Slurm, where it has started nothing. It finds a Python and hands over to holdfast_lifecycle beside it.
set -u

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd) || exit 1

for python in "${HOLDFAST_PYTHON:-}" python3 /usr/bin/python3; do
    if [ -n "$python" ] && command -v "$python" >/dev/null 2>&1; then
        # -S: no site-packages are needed, and looking for them takes as long as the steps.
        # A later --hook wins, which is how on_init_complete.sh says its own.
        PYTHONPATH="$here" exec "$python" -S -m holdfast_lifecycle --hook OnCreate --config "$here/config.json" "$@"
    fi
done

echo "lifecycle: python3 not found in PATH ($PATH) nor at /usr/bin/python3" >&2
echo "lifecycle: choose a HyperPod AMI, which has it, or set HOLDFAST_PYTHON" >&2
exit 1
