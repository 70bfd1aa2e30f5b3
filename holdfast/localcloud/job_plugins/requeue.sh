#!/bin/sh
# Put a job back into the queue where a node of its own is marked for replacement or reboot. Run by root of a node
# after a task of a step with --auto-resume=1 has failed. A job that was submitted with --no-requeue stays as it is.
set -u
PATH=/opt/slurm/bin:/usr/bin:/bin
export PATH

nodes=$(scontrol --oneliner show job "$1" | sed -n 's/.* NodeList=\([^ ]*\) .*/\1/p' | head -n 1)
[ -n "$nodes" ] || exit 0
scontrol --oneliner show node "$nodes" | grep -Eq ' State=[^ ]*(FAIL|DRAIN|DOWN).* Reason=Action:(Replace|Reboot) ' ||
    exit 0
exec scontrol requeue "$1"
