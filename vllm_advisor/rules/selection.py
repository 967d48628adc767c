"""Rules by the names people write: an id (``KV001``), a name, or a family (``KV``)."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from vllm_advisor.errors import InputError
from vllm_advisor.rules.registry import all_rules


def rules_named(name: str) -> frozenset[str]:
    """Ids of the rules that a word means; none if it means nothing."""
    upper = name.upper()
    return frozenset(
        rule.id for rule in all_rules() if upper in (rule.id, rule.family) or name == rule.name
    )


def near_names(name: str) -> tuple[str, ...]:
    """Up to three ids, names or families that are written much like a word."""
    known = {key for rule in all_rules() for key in (rule.id, rule.name, rule.family)}
    found = get_close_matches(name.upper(), sorted(known), n=3)
    return tuple(found or get_close_matches(name.lower(), sorted(known), n=3))


def select_rules(names: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Ids of the rules that words mean, all together.

    Args:
        names: each word, and where it is written.

    Raises:
        InputError: a word means no rule.
    """
    found: frozenset[str] = frozenset()
    for name, where in names:
        ids = rules_named(name)
        if not ids:
            near = near_names(name)
            raise InputError(
                f"no rule or family of rules is called {name!r}",
                where=where,
                fix=f"did you mean {' or '.join(near)}?" if near else "see `vllm-advisor rules`",
            )
        found |= ids
    return found
