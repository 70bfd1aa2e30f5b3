#!/bin/sh
# Keeps one program of a control plane running: respawn NAME PROGRAM ARGUMENT... Its output goes to /var/log/kube/NAME.log.
name=$1
shift
while :; do
    "$@" >> "/var/log/kube/$name.log" 2>&1
    echo "$name ended with status $?" >> "/var/log/kube/$name.log"
    sleep 0.5
done
