"""
A job whose number of ranks changes while it trains: the same sums whatever the number is, and the state cut anew.

``rounds`` and ``norm`` make a step the same at any size; ``parts`` says which rows go from whom to whom, and puts them
in. Who decides on sizes is `membership`, who carries it out the member of a job.
"""

from holdfast_runtime.elastic.norm import exact_norm
from holdfast_runtime.elastic.parts import Part, Rows, check_cut, complete, is_cut_by_rows, put_in, taken_out
from holdfast_runtime.elastic.refusals import THROUGHPUT, check, elastic_asked, sizes_of
from holdfast_runtime.elastic.rounds import OrderedReduceScatter, Rounds

__all__ = [
    "THROUGHPUT",
    "OrderedReduceScatter",
    "Part",
    "Rounds",
    "Rows",
    "check",
    "check_cut",
    "complete",
    "elastic_asked",
    "exact_norm",
    "is_cut_by_rows",
    "put_in",
    "sizes_of",
    "taken_out",
]
