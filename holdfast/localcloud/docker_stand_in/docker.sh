#!/bin/sh
# For CDK_DOCKER, which takes a program without arguments. Activate the environment that Holdfast is installed in first.
exec python -m holdfast.localcloud.docker_stand_in "$@"
