#!/bin/sh
# Make the folders of a batch job's output, as Slurm 23.02 and newer do. Run as the job's user before its script.
set -u
PATH=/opt/slurm/bin:/usr/bin:/bin
export PATH

scontrol show job "$1" | sed -n 's/^ *Std\(Out\|Err\)=//p' | while IFS= read -r file; do
    case $file in */*) mkdir -p -- "${file%/*}" ;; esac
done
