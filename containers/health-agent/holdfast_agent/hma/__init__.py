"""Log records of HyperPod's own agent (HMA), in the four known formats. Pure."""

from holdfast_agent.hma.finding import Finding, parse_finding

__all__ = ["Finding", "parse_finding"]
