"""What comes after the rules: comments that suppress findings, and edits that do not apply."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from vllm_advisor.api.check_report import severity_order
from vllm_advisor.api.check_sources import COMMAND_LINE
from vllm_advisor.api.rule_choice import CheckOptions
from vllm_advisor.parse.suppressions import read_suppressions
from vllm_advisor.parse.text_edits import overlap, placed
from vllm_advisor.rules.registry import run_suppression_rules
from vllm_advisor.rules.suppressing import hold_back
from vllm_advisor.types.finding import Finding
from vllm_advisor.types.suppression import Suppressed


class Reviewed(NamedTuple):
    """Findings that count and findings that are kept back, worst first."""

    findings: tuple[Finding, ...]
    suppressed: tuple[Suppressed, ...]


def review(
    findings: Iterable[Finding],
    texts: Mapping[str, str],
    options: CheckOptions,
    not_run: Collection[str],
) -> Reviewed:
    """Keep back what the comments in the files suppress, and judge these comments.

    Args:
        findings: what the rules found, in all files.
        texts: what was read, by file.
        options: which rules run.
        not_run: ids of rules that could not run somewhere.
    """
    by_file: dict[str, list[Finding]] = {file: [] for file in texts}
    for finding in findings:  # an instance of one file may have its fault in another
        if finding.rule not in options.rules_for(finding.location.file):
            continue
        by_file.setdefault(finding.location.file, []).append(_with_edits(finding, texts))
    stay: list[Finding] = []
    back: list[Suppressed] = []
    for file, found in by_file.items():
        comments = read_suppressions(texts.get(file, ""), file) if file != COMMAND_LINE else ()
        rules = options.rules_for(file)
        kept, held, uses = hold_back(found, comments, rules.difference(not_run))
        stay += (*kept, *run_suppression_rules(uses, rules))
        back += held
    return Reviewed(
        findings=tuple(sorted(stay, key=severity_order)),
        suppressed=tuple(sorted(back, key=lambda one: severity_order(one.finding))),
    )


def _with_edits(finding: Finding, texts: Mapping[str, str]) -> Finding:
    """The finding with its edits where they really apply, or without any."""
    found = [
        placed(texts[edit.file], edit) if edit.file in texts else None for edit in finding.edits
    ]
    edits = tuple(edit for edit in found if edit is not None)
    by_file = {edit.file: [e for e in edits if e.file == edit.file] for edit in edits}
    clash = any(overlap(texts[file], same) for file, same in by_file.items())
    return replace(finding, edits=() if clash or len(edits) < len(found) else edits)
