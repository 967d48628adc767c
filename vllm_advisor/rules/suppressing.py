"""Keeps back the findings that the comments of a file suppress, and says what came of each."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from vllm_advisor.rules.protocol import SuppressionUse
from vllm_advisor.rules.registry import all_rules
from vllm_advisor.rules.selection import near_names, rules_named
from vllm_advisor.types.finding import Finding
from vllm_advisor.types.suppression import Suppressed, Suppression


def hold_back(
    findings: Iterable[Finding], suppressions: Collection[Suppression], ran: Collection[str]
) -> tuple[tuple[Finding, ...], tuple[Suppressed, ...], tuple[SuppressionUse, ...]]:
    """Tell the findings of one file that stay from those that a comment keeps back.

    Args:
        findings: of the file.
        suppressions: its comments.
        ran: ids of the rules that were selected and could run.

    Returns:
        Findings that stay, findings kept back, and each comment with what it did.
    """
    stay: list[Finding] = []
    back: list[Suppressed] = []
    for finding in findings:
        by = next((s for s in suppressions if _means(s, finding)), None)
        if by is None:
            stay.append(finding)
        else:
            back.append(Suppressed(finding=finding, suppression=by))
    # A comment that another one has anticipated is not idle: it is judged by what it would do.
    everything = [*stay, *(one.finding for one in back)]
    uses = tuple(_use(s, [f for f in everything if _means(s, f)], ran) for s in suppressions)
    return tuple(stay), tuple(back), uses


def _means(suppression: Suppression, finding: Finding) -> bool:
    if suppression.problem or not suppression.covers(finding.location.line):
        return False
    return any(finding.rule in _suppressible(name) for name in suppression.names)


def _use(suppression: Suppression, hits: list[Finding], ran: Collection[str]) -> SuppressionUse:
    idle = []
    unknown = []
    for name in suppression.names:
        ids = _suppressible(name)
        if not ids:
            unknown.append((name, near_names(name)))
        elif ids <= set(ran) and not any(finding.rule in ids for finding in hits):
            idle.append(name)
    return SuppressionUse(suppression=suppression, idle=tuple(idle), unknown=tuple(unknown))


def _suppressible(name: str) -> frozenset[str]:
    """Rules that a comment can suppress: all but those about comments."""
    about_comments = {rule.id for rule in all_rules() if rule.scope == "suppression"}
    return rules_named(name) - about_comments
