#!/bin/bash
# Nothing to do on a new node.
set -euo pipefail
