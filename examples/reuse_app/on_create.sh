#!/bin/bash
# What this team wants on a new node. HyperPod runs it as root, once.
set -euo pipefail
echo "node $(hostname) is up" >>/var/log/research.log
