#!/bin/bash
# A check of the health agent: exit code 0 is healthy, 1 a finding, 2 unknown; the first line says what was seen.
set -u
free_percent=$((100 - $(df --output=pcent /tmp | tail -n 1 | tr -dc 0-9)))
if [ "$free_percent" -lt 5 ]; then
    echo "/tmp has $free_percent % left"
    exit 1
fi
