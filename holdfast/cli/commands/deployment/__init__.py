"""Verbs that bring a deployment up and take it down: up, down, env, images."""

__all__ = ["down", "env", "images", "up"]
