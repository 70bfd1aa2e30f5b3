#!/bin/bash
# Raises the limits of open files and locked memory for training jobs.
set -euo pipefail

cat >/etc/security/limits.d/90-training.conf <<'LIMITS'
* soft memlock unlimited
* hard memlock unlimited
* soft nofile 1048576
* hard nofile 1048576
LIMITS
