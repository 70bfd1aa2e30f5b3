"""Verbs that bring a deployment up and take it down, and make what it runs on: up, down, env, images, kubernetes."""

__all__ = ["down", "env", "images", "kubernetes", "up"]
