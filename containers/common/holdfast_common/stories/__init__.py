"""From events in order of time to incidents, and their costs to jobs."""

from holdfast_common.stories.history import History
from holdfast_common.stories.jobs import with_jobs
from holdfast_common.stories.marks import Marks
from holdfast_common.stories.stalls import Stall, Stalls
from holdfast_common.stories.telling import Stories

__all__ = ["History", "Marks", "Stall", "Stalls", "Stories", "with_jobs"]
