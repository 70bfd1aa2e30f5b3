"""What a launcher looks at while its job runs: exceptions of the program, processes that are stopped, silence."""

from holdfast_runtime.launcher.watch.judgement import Judgement
from holdfast_runtime.launcher.watch.silence import Watch

__all__ = ["Judgement", "Watch"]
