#!/bin/bash
# HyperPod runs this as root on a new Slurm node where a group's LifeCycleConfig has OnInitComplete: after its own
# configuration of the AMI, so file systems are mounted and Slurm is started.
case ${BASH_SOURCE[0]} in */*) folder=${BASH_SOURCE[0]%/*} ;; *) folder=. ;; esac
# Read, not run: S3 keeps no modes.
set -- --hook OnInitComplete "$@"
# shellcheck source=/dev/null
. "$folder/on_create.sh"
