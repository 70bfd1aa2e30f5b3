"""What HyperPod's own agent (HMA) says: its log records, in the four shapes that are known. Pure."""

from holdfast_agent.hma.finding import Finding, parse_finding

__all__ = ["Finding", "parse_finding"]
