#!/bin/bash
# HyperPod runs this as root on a new Slurm node where a group's LifeCycleConfig has OnInitComplete: after its own
# configuration of the AMI, so file systems are mounted and Slurm is started.
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd) || exit 1
# Through bash: S3 keeps no modes.
exec bash "$here/on_create.sh" --hook OnInitComplete "$@"
