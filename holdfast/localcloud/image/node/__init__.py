"""Programs that are copied to nodes: ``systemctl`` and the stand-ins. Standard library alone; how is for ``image``."""
