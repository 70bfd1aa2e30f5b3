"""
Lambda functions in Python, really run: the code that a stack uploaded, in a process that has its role's keys and
nothing else of this machine.

Where code, layers, keys and the place of the answer come from is for `aws`. There is no warm start: every event has a
process of its own. The interpreter is the one that runs Holdfast, whichever ``Runtime`` the function names.

    code = Packages(home / "functions").unpacked("the etag of it", fetch=[lambda: zip_bytes])
    run(Function(handler="index.handler", ...), event={...}, pause=time.sleep)
"""

from holdfast.localcloud.functions.packages import PackageError, Packages
from holdfast.localcloud.functions.running import Function, FunctionError, Run, run

__all__ = ["Function", "FunctionError", "PackageError", "Packages", "Run", "run"]
