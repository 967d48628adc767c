"""Reports for machines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml


def to_json(report: Mapping[str, Any]) -> str:
    """A report as JSON with keys in their given order, in ASCII, ending in a newline.

    Raises:
        ValueError: a number is infinite or no number: JSON has neither.
    """
    return json.dumps(report, indent=2, allow_nan=False) + "\n"


def to_yaml(report: Mapping[str, Any]) -> str:
    """A report as YAML in block style with keys in their given order; it loads back the same."""
    fresh = json.loads(json.dumps(report, allow_nan=False))  # no shared parts, so no anchors
    text: str = yaml.dump(fresh, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return text


class _Dumper(yaml.SafeDumper):
    """Double-quotes text with invisible characters: in single quotes reading changes U+0085."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
