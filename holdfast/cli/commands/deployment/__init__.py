"""
Verbs that bring a deployment up, choose one and take it down, and make what it runs on: up, use, down, env, images,
kubernetes.
"""

__all__ = ["down", "env", "images", "kubernetes", "up", "use"]
