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
    return yaml.safe_dump(fresh, sort_keys=False, allow_unicode=True, width=100)
