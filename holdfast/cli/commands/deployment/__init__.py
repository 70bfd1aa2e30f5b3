"""Verbs for deployments: up, use, down, env, images, kubernetes."""

__all__ = ["down", "env", "images", "kubernetes", "up", "use"]
