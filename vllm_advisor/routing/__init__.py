"""For applications: where to send a request, and how to keep a conversation short enough.

``Router`` reads ``routing.yaml`` and decides; ``fit_history`` shortens a history. No network, no
framework::

    from vllm_advisor.routing import Router

    router = Router("deploy/routing.yaml")
    decision = router.decide(prompt_tokens=9_000, needs="lookup")
    decision.action, decision.model, decision.reason
"""

from __future__ import annotations

from vllm_advisor.routing.router import Action, Router, RoutingDecision

__all__ = ["Action", "Router", "RoutingDecision"]
