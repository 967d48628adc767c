"""What LiteLLM's proxy would make of a configuration, as far as it can be told without it.

The proxy itself reads the file in tests/routers; here are the mistakes that it says nothing of.
"""

from __future__ import annotations

from typing import Any

ENTRY = {"model_name", "litellm_params", "model_info"}
PARAMS = {"model", "api_base", "api_key", "order", "tags"}


def litellm_problems(config: dict[str, Any]) -> list[str]:
    """Unknown keys, ids that are not unique, orders with gaps, fallbacks to nowhere."""
    problems: list[str] = []
    entries = config["model_list"]
    ids = [entry["model_info"]["id"] for entry in entries]
    groups: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        if set(entry) != ENTRY or not set(entry["litellm_params"]) <= PARAMS:
            problems.append(f"unknown keys in {entry}")
        groups.setdefault(entry["model_name"], []).append(entry)
    if len(set(ids)) != len(ids):
        problems.append(f"two deployments have one id: {sorted(ids)}")
    for name, members in groups.items():
        orders = sorted({m["litellm_params"]["order"] for m in members})
        if orders != list(range(1, len(orders) + 1)):
            problems.append(f"orders of {name} are {orders}")
        limits = [
            m["model_info"]["max_input_tokens"]
            for m in sorted(members, key=lambda m: m["litellm_params"]["order"])
        ]
        if sorted(limits) != limits:
            problems.append(f"a later order of {name} takes less than an earlier one: {limits}")
    settings = config["router_settings"]
    named = list(settings.get("model_group_alias", {}).values())
    for fallback in settings.get("context_window_fallbacks", []):
        for source, targets in fallback.items():
            named += [source, *targets]
    problems += [f"{name} is no model of the list" for name in named if name not in groups]
    if not config["general_settings"].get("master_key", "").startswith("os.environ/"):
        problems.append("the master key stands in the file")
    return problems
