"""Watch over a running job: exceptions of the program, stopped processes, silence."""

from holdfast_runtime.launcher.watch.judgement import Judgement
from holdfast_runtime.launcher.watch.silence import Watch

__all__ = ["Judgement", "Watch"]
