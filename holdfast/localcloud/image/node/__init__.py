"""What is copied to nodes as programs: ``systemctl`` and the stand-ins. Standard library alone; how is for ``image``."""
