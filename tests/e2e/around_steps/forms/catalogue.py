"""All forms, by name."""

from forms import attributes, averages, buffers, groups, modes, randoms, schedules, switches, weights
from forms.form import FORMS

__all__ = [
    "FORMS",
    "attributes",
    "averages",
    "buffers",
    "groups",
    "modes",
    "randoms",
    "schedules",
    "switches",
    "weights",
]
