"""Verbs for jobs: submit, list, explain, resize, cancel."""
