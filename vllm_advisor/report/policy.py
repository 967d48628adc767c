"""The routing policy in a terminal: what each route takes, and what a request costs on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vllm_advisor.report.console import Page
from vllm_advisor.report.values import cell

_NOBODY = "-"


def print_policy(page: Page, policy: Mapping[str, Any] | None) -> None:
    """Print the limits and fallbacks of every route, and the ways of classes that have several.

    Args:
        page: what is printed on.
        policy: the policy as plain data, as in ``routing.yaml``; ``None`` prints nothing.
    """
    if policy is None:
        return
    page.blank()
    page.table(
        ("route", "instance", "prompts up to", "bound by", "longer", "stands in"),
        [
            (
                route["name"],
                route["instance"],
                cell(route["max_prompt_tokens"]),
                route["bound_by"],
                route["on_overflow"] or "refused",
                route["on_outage"] or _NOBODY,
            )
            for route in policy["routes"]
        ],
        right=(2,),
    )
