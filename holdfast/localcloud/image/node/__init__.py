"""Programs copied to nodes: ``systemctl`` and the stand-ins. Standard library only."""
