"""
CloudFormation: templates with line numbers, a graph of resources, values of functions. No service, no file.
"""

from holdfast.validation.cloudformation.document import (
    DEEPEST,
    Fault,
    LinedList,
    LinedMapping,
    Unreadable,
    line_of,
    twice,
)
from holdfast.validation.cloudformation.graph import Graph, Reference, Resource, Template, Text
from holdfast.validation.cloudformation.intrinsics import ABSENT, Intrinsics
from holdfast.validation.cloudformation.order import Order, named
from holdfast.validation.cloudformation.properties import Properties
from holdfast.validation.cloudformation.pseudo import EXAMPLE_ACCOUNT
from holdfast.validation.cloudformation.unresolved import UNRESOLVED
from holdfast.validation.cloudformation.values import Linked, Node, Values, optional, required
from holdfast.validation.cloudformation.words import distance

__all__ = [
    "ABSENT",
    "DEEPEST",
    "EXAMPLE_ACCOUNT",
    "UNRESOLVED",
    "Fault",
    "Graph",
    "Intrinsics",
    "LinedList",
    "LinedMapping",
    "Linked",
    "Node",
    "Order",
    "Properties",
    "Reference",
    "Resource",
    "Template",
    "Text",
    "Unreadable",
    "Values",
    "distance",
    "line_of",
    "named",
    "optional",
    "required",
    "twice",
]
