"""For applications: where to send a request, and how to keep a conversation short enough.

``Router`` reads ``routing.yaml`` and decides; ``fit_history`` shortens a history. No network, no
framework::

    from vllm_advisor.routing import Router

    router = Router("deploy/routing.yaml")
    decision = router.decide(prompt_tokens=9_000, needs="lookup")
    decision.action, decision.model, decision.reason

docs/applications.md tells the rest.
"""

from __future__ import annotations

from vllm_advisor.routing.decision import Action, RoutingDecision
from vllm_advisor.routing.history import afit_history, fit_history
from vllm_advisor.routing.messages import Message, estimate_tokens
from vllm_advisor.routing.router import Router

__all__ = [
    "Action",
    "Message",
    "Router",
    "RoutingDecision",
    "afit_history",
    "estimate_tokens",
    "fit_history",
]
