"""The rules of check, for people and for programs."""

from __future__ import annotations

from typing import Any

from vllm_advisor.rules.protocol import Rule
from vllm_advisor.rules.registry import all_rules
from vllm_advisor.rules.selection import select_rules


def list_rules(name: str | None = None) -> list[dict[str, Any]]:
    """Every rule, or those of an id, a name or a family, by id.

    Returns:
        ``id``, ``name``, ``family``, ``severity``, ``summary``, ``needs``, ``flags`` (dests that
        the rule reads) and ``page`` (Markdown) of each.

    Raises:
        InputError: the word means no rule.
    """
    ids = None if name is None else select_rules([(name, "rules")])
    return [_rule(rule) for rule in all_rules() if ids is None or rule.id in ids]


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": rule.name,
        "family": rule.family,
        "severity": rule.severity.value,
        "summary": rule.summary,
        "needs": list(rule.needs),
        "flags": list(rule.flags),
        "page": rule.page,
    }
