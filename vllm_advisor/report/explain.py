"""Why: of every decision and every figure of a plan, down to where they come from."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, KeysView, Mapping
from dataclasses import dataclass
from typing import Any

from vllm_advisor.errors import InputError
from vllm_advisor.report.console import Page
from vllm_advisor.report.values import cell, setting, size


def print_explanation(plan: Mapping[str, Any], asked: str | None = None) -> None:
    """Explain one thing in a plan, or list all that can be asked about.

    Args:
        plan: the plan as plain data, as in ``plan.yaml``.
        asked: id of a decision, a figure or an assumption, or a flag as it is spelled on the
            command line, which may belong to several instances. ``None`` lists all decisions.

    Raises:
        InputError: the plan has nothing of that name, or is no plan.
    """
    facts = _Facts.of(plan)
    page = Page()
    if asked is None:
        for reason in plan.get("infeasible_because") or ():
            page.text("no feasible plan: ", reason)
        for decision in facts.decisions.values():
            flag = f"  ({decision['flag']})" if decision["flag"] else ""
            page.verbatim((decision["id"], "bold"), f" = {setting(decision['value'])}{flag}")
        return
    for index, found in enumerate(facts.find(asked)):
        if index:
            page.blank()
        _explain(page, facts, found, depth=0, said=set())


_KEYS: Mapping[str, KeysView[str]] = {
    kind: dict.fromkeys(keys.split()).keys()
    for kind, keys in (
        ("decisions", "id value flag reason source because rejected"),
        ("figures", "id value unit formula inputs source"),
        ("assumptions", "id text"),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """Everything in a plan that has an id."""

    decisions: dict[str, Mapping[str, Any]]
    figures: dict[str, Mapping[str, Any]]
    assumptions: dict[str, Mapping[str, Any]]

    @classmethod
    def of(cls, plan: Mapping[str, Any]) -> _Facts:
        kinds = {}
        for kind, keys in _KEYS.items():
            rows = plan.get(kind)
            if not isinstance(rows, list) or not all(
                isinstance(row, Mapping) and keys <= row.keys() for row in rows
            ):
                raise InputError(
                    f"this is no plan: it needs a list of {kind}, each with {', '.join(keys)}",
                    where=kind,
                    fix="give the plan.yaml that vllm-advisor plan wrote",
                )
            kinds[kind] = {str(row["id"]): row for row in rows}
        return cls(**kinds)

    def find(self, asked: str) -> list[str]:
        """Ids of what is meant: one id, or the decisions behind a flag."""
        if asked in self.decisions or asked in self.figures or asked in self.assumptions:
            return [asked]
        flag = asked.replace("_", "-")
        of_flag = [i for i, d in self.decisions.items() if d["flag"] and d["flag"] == flag]
        if of_flag:
            return of_flag
        near = difflib.get_close_matches(asked, list(self._names()), n=3, cutoff=0.5)
        raise InputError(
            f"the plan has no decision, figure or flag {asked!r}",
            fix=f"did you mean {' or '.join(near)}?" if near else "leave the id out to list them",
        )

    def _names(self) -> Iterator[str]:
        names = dict.fromkeys([*self.decisions, *self.figures, *self.assumptions])
        yield from names
        yield from dict.fromkeys(d["flag"] for d in self.decisions.values() if d["flag"])


def _explain(page: Page, facts: _Facts, name: str, *, depth: int, said: set[str]) -> None:
    """Print one thing, and beneath it whatever it rests on; each thing once."""
    indent = 2 * depth
    if name in said:
        page.text(f"{name}: see above", indent=indent)
        return
    if name in facts.decisions or name in facts.figures:
        said.add(name)
    if name in facts.decisions:
        _print_decision(page, facts.decisions[name], indent)
        reasons = facts.decisions[name]["because"]
    elif name in facts.figures:
        _print_figure(page, facts.figures[name], indent)
        reasons = facts.figures[name]["inputs"]
    elif name in facts.assumptions:
        page.text((name, "bold"), f" (assumed): {facts.assumptions[name]['text']}", indent=indent)
        return
    else:
        page.text(name, indent=indent)  # a fact: its source is all there is to say
        return
    for reason in reasons:
        _explain(page, facts, reason, depth=depth + 1, said=said)


def _print_decision(page: Page, decision: Mapping[str, Any], indent: int) -> None:
    flag = f"  ({decision['flag']})" if decision["flag"] else ""
    page.text((decision["id"], "bold"), f" = {setting(decision['value'])}{flag}", indent=indent)
    page.text(decision["reason"], indent=indent + 2)
    page.text(f"source: {decision['source']}", indent=indent + 2)
    for rejected in decision["rejected"]:
        page.text(f"not {rejected['option']}: {rejected['why']}", indent=indent + 2)


def _print_figure(page: Page, figure: Mapping[str, Any], indent: int) -> None:
    value = f"{cell(figure['value'])} {figure['unit']}".rstrip()
    if figure["unit"] == "bytes":
        value += f" ({size(figure['value'])})"
    page.text((figure["id"], "bold"), f" = {value}", indent=indent)
    page.text(f"= {figure['formula']}  [{figure['source']}]", indent=indent + 2)
