"""
Lambda functions in Python, run in a process that has its role's keys and nothing else of this machine.

No warm start: every event has its own process. The interpreter is Holdfast's, whichever ``Runtime`` is named.

    code = Packages(home / "functions").unpacked("the etag of it", fetch=[lambda: zip_bytes])
    run(LambdaFunction(handler="index.handler", ...), event={...}, pause=time.sleep)
"""

from holdfast.localcloud.functions.packages import PackageError, Packages
from holdfast.localcloud.functions.running import FunctionError, LambdaFunction, Run, run

__all__ = ["FunctionError", "LambdaFunction", "PackageError", "Packages", "Run", "run"]
