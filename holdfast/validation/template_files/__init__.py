"""Readers of templates and cloud assemblies: JSON and YAML with lines, loops unrolled."""

from holdfast.validation.template_files.assemblies import nested_templates, read_template, read_templates
from holdfast.validation.template_files.json_text import json_fault, read_json
from holdfast.validation.template_files.loops import EXTENSIONS, transforms, unrolled
from holdfast.validation.template_files.reading import looks_like_a_template, read_text
from holdfast.validation.template_files.yaml_text import read_yaml

__all__ = [
    "EXTENSIONS",
    "json_fault",
    "looks_like_a_template",
    "nested_templates",
    "read_json",
    "read_template",
    "read_templates",
    "read_text",
    "read_yaml",
    "transforms",
    "unrolled",
]
