#!/bin/bash
# What this team wants on a new node. HyperPod runs it as root, once, after it has made the node ready (mode extension).
set -euo pipefail
echo "node $(hostname) is up" >>/var/log/research.log
