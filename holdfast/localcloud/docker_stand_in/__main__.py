"""``python -m holdfast.localcloud.docker_stand_in``: run by the CDK CLI in place of docker."""

import sys

from holdfast.localcloud.docker_stand_in.program import main

if __name__ == "__main__":
    sys.exit(main())
