"""
Print the digest of a chart, for ``holdfast/catalog/charts.json``: the archive comes on standard input.

``git archive --format=tar.gz --prefix=chart/ COMMIT PATH | python -m holdfast_constructs.helm_installer PATH``, or the
archive of the commit that GitHub offers.
"""

import sys

from ._archive import read_chart, tree_sha256

if __name__ == "__main__":
    print(tree_sha256(read_chart(sys.stdin.buffer, sys.argv[1])))
