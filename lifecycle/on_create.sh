#!/bin/bash
# HyperPod runs this as root on a new node where a group's LifeCycleConfig has OnCreate: on EKS, and in custom mode
# on Slurm, where it has started nothing. It finds a Python and hands over to holdfast_lifecycle beside it.
set -u

case ${BASH_SOURCE[0]} in */*) here=${BASH_SOURCE[0]%/*} ;; *) here=. ;; esac
case $here in /*) ;; *) here=$PWD/$here ;; esac

# HyperPod uploads this file and nothing else. Its agent looks every three seconds, and a failed instance may be gone
# at once, so a failure waits a little longer than that.
log=${HOLDFAST_PROVISIONING_LOG-/var/log/provision/provisioning.log}
upload_wait_s=5
if [ -n "$log" ] && [ ! -t 1 ]; then
    [ -d "${log%/*}" ] || mkdir -p "${log%/*}"
    exec >>"$log" 2>&1
fi

for python in "${HOLDFAST_PYTHON:-}" python3 /usr/bin/python3; do
    if [ -n "$python" ] && command -v "$python" >/dev/null 2>&1; then
        # -S, and not -m: looking for site-packages and for the module would take as long as the steps.
        # A later --hook wins, which is how on_init_complete.sh says its own.
        run='import sys; from holdfast_lifecycle import main; sys.exit(main(sys.argv[1:]))'
        PYTHONPATH="$here" "$python" -S -c "$run" --hook OnCreate --config "$here/config.json" "$@"
        code=$?
        [ $code -eq 0 ] || [ -z "$log" ] || [ -t 1 ] || sleep $upload_wait_s
        exit $code
    fi
done

echo "lifecycle: python3 not found in PATH ($PATH) nor at /usr/bin/python3" >&2
echo "lifecycle: choose a HyperPod AMI, which has it, or set HOLDFAST_PYTHON" >&2
exit 1
