"""
The verbs of ``holdfast``, a thin file each: options, one call, what is printed, the exit code. No verb imports a
verb.
"""
