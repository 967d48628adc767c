"""The plan in a terminal: what to run, what fits, why, and what else was tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vllm_advisor.report.console import Page, Part
from vllm_advisor.report.memory import print_kv_cache, print_memory
from vllm_advisor.report.policy import print_policy
from vllm_advisor.report.values import cell, counted, price, print_command, setting, size
from vllm_advisor.units import format_small

REASONS = 4  # over all instances, but two for each; explain has the rest
REASONS_OF_THE_DEPLOYMENT = 1  # the strategy of each class stands under Routes
ALTERNATIVES = 4
# Figures of an instance that have a place of their own here.
_ASKED, _NEEDED, _TTFT = "concurrency.", "kv.blocks_needed", "ttft."
_IN_THE_LOG_LINE = ("kv.max_concurrency", "kv.total_concurrency")
_UNKNOWN = "-"


def print_plan(plan: Mapping[str, Any]) -> None:
    """Print a plan for a person.

    Args:
        plan: the plan as plain data, as in ``plan.yaml``.
    """
    page = Page()
    if plan["feasible"]:
        _print_headline(page, plan)
        for instance in plan["instances"]:
            _print_instance(page, plan, instance)
        _print_deployment_reasons(page, plan)
        _print_routes(page, plan["routing"])
        print_policy(page, plan["routing_policy"])
    else:
        _print_infeasible(page, plan)
    shown = ALTERNATIVES if plan["feasible"] else len(plan["alternatives"])
    _print_alternatives(page, plan["alternatives"], shown)
    _print_list(page, "Assumptions", [_assumption(a) for a in plan["assumptions"]])
    _print_list(page, "Notes", plan["notes"])


def _print_headline(page: Page, plan: Mapping[str, Any]) -> None:
    cost = plan["cost"]
    what = f"{counted(len(plan['instances']), 'instance')} on {cost['gpus']} x "
    what += f"{plan['hardware']['gpu_name']}, {price(cost['usd_per_hour'])}"
    page.text((f"{plan['name']}: {what}, confidence {plan['confidence']}", "bold"))
    if cost["usd_per_million_output_tokens"] is not None:
        page.text(
            f"${cost['usd_per_million_output_tokens']:,.2f} per million output tokens and "
            f"${format_small(cost['usd_per_request'])} per request at the stated load"
        )
    page.text(f"{plan['model']} with vLLM {plan['vllm_version']}")


def _print_infeasible(page: Page, plan: Mapping[str, Any]) -> None:
    hardware = plan["hardware"]
    page.text(
        (f"{plan['name']}: no feasible plan", "bold red"),
        f" for {plan['model']} on {hardware['node_count'] * hardware['gpu_count']} x "
        f"{hardware['gpu_name']} with vLLM {plan['vllm_version']}",
    )
    _print_list(page, "Why it does not work", plan["infeasible_because"])
    _print_list(page, "The nearest that works", plan["nearest"].splitlines())


def _print_instance(page: Page, plan: Mapping[str, Any], instance: Mapping[str, Any]) -> None:
    name, figures = instance["name"], instance["figures"]
    page.blank()
    page.text(
        (name, "bold"),
        f" ({instance['role']}): {counted(instance['replicas'], 'replica')} x "
        f"{counted(instance['gpus'], 'GPU')}",
        f", serves {', '.join(instance['classes'])}" if instance["classes"] else "",
    )
    if figures:
        if figures["memory"]:
            print_memory(page, figures["memory"])
        print_kv_cache(page, figures)
    _print_demand(page, plan, instance)
    _print_speed(page, plan, instance)
    print_command(page, instance["command"])
    decisions = [d for d in plan["decisions"] if d["id"].startswith(f"{name}.")]
    _print_reasons(page, decisions, max(2, REASONS // len(plan["instances"])))


def _print_demand(page: Page, plan: Mapping[str, Any], instance: Mapping[str, Any]) -> None:
    """How many requests are asked for at once, and how much of the KV cache they take."""
    prefix = f"{instance['name']}."
    own = {f["id"].removeprefix(prefix): f for f in plan["figures"] if f["id"].startswith(prefix)}
    requests = {key: cell(f["value"]) for key, f in own.items() if f["unit"] == "requests"}
    asked = [
        f"{key.removeprefix(_ASKED)} {value}"
        for key, value in requests.items()
        if key.startswith(_ASKED)
    ]
    if asked:
        line = f"asked for at once: {', '.join(asked)}"
        if _NEEDED in own and instance["figures"]:
            blocks = instance["figures"]["kv_cache"]["num_gpu_blocks"]
            line += f"; that takes {cell(own[_NEEDED]['value'])} of {cell(blocks)} KV cache blocks"
            if instance["figures"]["kv_cache"].get("engines", 1) > 1:
                line += " of each engine"
            elif instance["replicas"] > 1:
                line += " of each replica"
        page.text(line, indent=2)
    for key, value in requests.items():
        if not key.startswith(_ASKED) and key not in _IN_THE_LOG_LINE:
            page.text(f"{key}: {value} requests ({own[key]['formula']})", indent=2)


def _print_speed(page: Page, plan: Mapping[str, Any], instance: Mapping[str, Any]) -> None:
    """Estimated times at the stated load."""
    prefix = f"{instance['name']}.speed."
    own = {
        f["id"].removeprefix(prefix): f["value"]
        for f in plan["figures"]
        if f["id"].startswith(prefix)
    }
    first = [
        f"{key.removeprefix(_TTFT)} {cell(value)} ms"
        for key, value in own.items()
        if key.startswith(_TTFT)
    ]
    if first:
        page.text(
            f"95th percentiles at the stated load: first token {', '.join(first)}; "
            f"between tokens {cell(own['itl'])} ms",
            indent=2,
        )


def _print_deployment_reasons(page: Page, plan: Mapping[str, Any]) -> None:
    owners = tuple(f"{instance['name']}." for instance in plan["instances"])
    decisions = [d for d in plan["decisions"] if not d["id"].startswith(owners)]
    if decisions:
        page.heading("The deployment")
        _print_reasons(page, decisions, REASONS_OF_THE_DEPLOYMENT)


def _print_reasons(page: Page, decisions: Sequence[Mapping[str, Any]], limit: int) -> None:
    """The most telling decisions: a choice between options, then flags, then the rest."""
    ranked = sorted(decisions, key=lambda d: (not d["rejected"], d["flag"] is None))
    for decision in ranked[:limit]:
        options = "; ".join(rejected["option"] for rejected in decision["rejected"])
        page.text(
            (_setting(decision), "cyan"),
            f": {decision['reason']} [{decision['source']}]",
            (f" instead of {options}" if options else "", "dim"),
            indent=2,
            bullet="- ",
        )
    unsaid = len(ranked) - limit
    if unsaid > 0:
        page.text(f"{counted(unsaid, 'more reason')}: vllm-advisor explain", indent=2, bullet="- ")


def _setting(decision: Mapping[str, Any]) -> str:
    value, name = decision["value"], decision["flag"] or decision["subject"]
    if decision["flag"] and value is True:
        return str(name)
    return f"{name} {setting(value)}"


def _print_routes(page: Page, routes: Sequence[Mapping[str, Any]]) -> None:
    if not routes:
        return
    page.heading("Routes")
    page.table(
        ("requests", "go to", "how, and why"),
        [
            (
                route["request_class"],
                route["instance"] + (f", else {route['fallback']}" if route["fallback"] else ""),
                route["strategy"]
                + (", after retrieval: " if route["retrieve"] else ": ")
                + route["reason"],
            )
            for route in routes
        ],
    )


def _print_alternatives(page: Page, alternatives: Sequence[Mapping[str, Any]], limit: int) -> None:
    if not alternatives:
        return
    page.heading("What else was tried")
    page.table(
        ("GPUs", "KV/request", "at once", "cost", "TTFT", "token", "option, its loss, why not"),
        [
            (
                cell(option["gpus"]),
                size(option["kv_bytes_per_request"]),
                cell(option["max_concurrency"]),
                _UNKNOWN
                if option["cost_usd_per_hour"] is None
                else price(option["cost_usd_per_hour"]),
                _milliseconds(option["ttft_p95_ms"]),
                _milliseconds(option["itl_p95_ms"]),
                _told(option),
            )
            for option in alternatives[:limit]
        ],
        right=(0, 1, 2, 3, 4, 5),
    )
    if any(option["pareto"] for option in alternatives):
        page.text(
            "* nothing else for this instance takes no more GPUs and is faster; TTFT and time "
            "between tokens are 95th percentiles at the stated load",
            indent=2,
        )
    unsaid = len(alternatives) - limit
    if unsaid > 0:
        page.text(f"{unsaid} more in PLAN.md", indent=2, bullet="- ")


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f} ms"


def _told(option: Mapping[str, Any]) -> tuple[Part, ...]:
    told = [f"loses {option['loses']}"] if option["loses"] else []
    if option["why"]:
        told.append(f"{'not taken' if option['feasible'] else 'does not work'}: {option['why']}")
    star = "* " if option["pareto"] else ""
    return ((f"{star}{option['name']} ({option['subject']})", "bold"), "; ".join(told))


def _print_list(page: Page, title: str, lines: Sequence[str]) -> None:
    if lines:
        page.heading(title)
        for line in lines:
            page.text(line, indent=2, bullet="- ")


def _assumption(assumption: Mapping[str, Any]) -> str:
    lowers = assumption["lowers_to"]
    return str(assumption["text"]) + (f" (confidence {lowers} at most)" if lowers != "high" else "")
