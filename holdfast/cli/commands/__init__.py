"""Verbs of ``holdfast``: options, one call, output, exit code. No verb imports another."""
