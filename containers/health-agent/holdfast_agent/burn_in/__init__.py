"""Load tests of a node without work: detect wrong results and low speed."""

from holdfast_agent.burn_in.burn_in import burn_in
from holdfast_agent.burn_in.peers import medians, slower
from holdfast_agent.burn_in.trial import Trial
from holdfast_agent.burn_in.turns import IDLE, JOINING, TURNS, turn

__all__ = ["IDLE", "JOINING", "TURNS", "Trial", "burn_in", "medians", "slower", "turn"]
