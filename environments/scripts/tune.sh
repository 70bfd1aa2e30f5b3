#!/bin/sh
# An example of a lifecycle script of your own: it runs as root on every new node, after Holdfast's steps.
set -eu
echo 'vm.max_map_count = 1048576' >/etc/sysctl.d/90-training.conf
