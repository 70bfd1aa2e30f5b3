"""
A job whose number of ranks changes while it trains: the same sums whatever the number is, and the state cut anew.

``rounds`` and ``norm`` make a step the same at any size; ``parts`` says which rows go from whom to whom, and puts them
in. Who decides on sizes is `membership`, who carries it out the member of a job.
"""

from holdfast_runtime.elastic.norm import exact_norm
from holdfast_runtime.elastic.parts import Part, Rows, complete, is_cut_by_rows, put_in, taken_out
from holdfast_runtime.elastic.refusals import check, elastic_asked, sizes_of
from holdfast_runtime.elastic.rounds import Rounds

__all__ = [
    "Part",
    "Rounds",
    "Rows",
    "check",
    "complete",
    "elastic_asked",
    "exact_norm",
    "is_cut_by_rows",
    "put_in",
    "sizes_of",
    "taken_out",
]
