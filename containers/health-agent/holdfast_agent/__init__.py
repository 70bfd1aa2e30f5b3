"""
Health agent of a node: signals become evidence, evidence a verdict, a verdict a remedy.

Standard library only and Python 3.9, as everything on the nodes.
"""
