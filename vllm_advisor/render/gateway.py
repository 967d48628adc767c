"""What the targets behind a Gateway share: it is the only way in, and it has to be let in."""

from __future__ import annotations

from dataclasses import replace

from vllm_advisor.types.plan import Plan


def through_gateway(plan: Plan) -> Plan:
    """The plan reached through its Gateway only: no Ingress, and the Gateway's pods let in."""
    place = plan.environment
    through = (place.gateway_namespace,) if place.gateway_namespace else ()
    return replace(
        plan,
        environment=replace(
            place,
            ingress_host=None,
            client_namespaces=tuple(dict.fromkeys((*place.client_namespaces, *through))),
        ),
    )
