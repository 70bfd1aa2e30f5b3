"""
``holdfast-run``: one launcher per node starts the ranks and replaces what breaks. Never imports torch. ``node``
connects the rooms: ``zygote`` (forks), ``ranks`` (processes and what they say), ``links`` (other launchers),
``generation`` (which view follows), ``keys`` (the store), ``watch`` (silence).
"""

__all__ = ["hyperpodrun", "interpreter"]
