"""Target ``llm-d``: the manifests with the labels of one InferencePool, its route, router values.

A model server of llm-d is any pod with the pool's labels. Its chart llm-d-router-gateway makes
the InferencePool over them and the endpoint picker that chooses one of them for each request; where
a plan has a short and a long instance, it chooses by the length of the prompt.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

from vllm_advisor.errors import OutputError
from vllm_advisor.render.gateway import through_gateway
from vllm_advisor.render.groups import LEADER_LABEL
from vllm_advisor.render.jinja import render_template
from vllm_advisor.render.kubernetes import render_folder
from vllm_advisor.render.kustomization import kustomization
from vllm_advisor.render.names import dns_label, label_value, metadata_of, plan_labels
from vllm_advisor.render.pod import common_names, nodes_per_replica, port_of, served_names
from vllm_advisor.render.prompt_ranges import prompt_ranges
from vllm_advisor.types.decision import Decision
from vllm_advisor.types.engine import EngineArg, EngineFacts
from vllm_advisor.types.environment import GatewayProvider
from vllm_advisor.types.plan import Artifact, Instance, Plan
from vllm_advisor.types.source import Source, SourceKind
from vllm_advisor.version import __version__

TARGET = "llm-d"
CHART = "oci://ghcr.io/llm-d/charts/llm-d-router-gateway"
CHART_VERSION = "v0.10.0"
RANGE_LABEL = "llm-d.ai/context-length-range"  # read by the plugin context-length-aware
PLUGINS_FILE = "vllm-advisor.yaml"
# The chart names the picker after its release, of which it keeps 40 characters.
_LONGEST_POOL = 40
# What the picker weighs unless told otherwise (llm-d-router pkg/epp/config/loader/defaults.go).
_SCORERS = {"queue-scorer": 2, "kv-cache-utilization-scorer": 2, "prefix-cache-scorer": 3}
_POOL_CODE = "https://github.com/llm-d/llm-d-router/blob/v0.10.0/pkg/epp/datastore/datastore.go"


def render(plan: Plan, engine: EngineFacts) -> tuple[Artifact, ...]:
    """``llm-d/<instance>.yaml``, ``httproute.yaml``, a kustomization and ``router-values.yaml``.

    Raises:
        OutputError: the instances cannot stand in for each other behind one pool.
    """
    _check_one_name(plan)
    pool = pool_name(plan)
    port = port_of(plan.deployment.instances[0], engine)
    ranges = prompt_ranges(plan)
    grouped = any(nodes_per_replica(plan, each) > 1 for each in plan.deployment.instances)
    members = {"llm-d.ai/guide": pool, "llm-d.ai/model": label_value(plan.model)}
    pod_labels = {
        each.name: members | ({RANGE_LABEL: ranges[each.name].label} if ranges else {})
        for each in plan.deployment.instances
    }
    _, *files = render_folder(
        behind_gateway(plan, port, engine), engine, TARGET, pod_labels=pod_labels, grouped=grouped
    )
    if plan.environment.gateway_name:
        files.append(_artifact("httproute.yaml", _route_view(plan, pool)))
    names = [artifact.path.split("/")[-1] for artifact in files]
    values = {
        **_values_view(plan, pool, port),
        # In groups only the first pod serves; one selector cannot tell groups from single pods.
        "members": members | (LEADER_LABEL if grouped else {}),
        "grouped": grouped,
        "ranges": list(ranges.values()),
        "config": picker_config(plan, by_length=bool(ranges)),
    }
    return (
        kustomization(plan, TARGET, names, _requests(plan, pool)),
        *files,
        _artifact("router-values.yaml", values),
    )


def pool_name(plan: Plan) -> str:
    """Name of the Helm release, and with it of the InferencePool and the HTTPRoute."""
    return dns_label(plan.name, _LONGEST_POOL)


def behind_gateway(plan: Plan, port: int, engine: EngineFacts) -> Plan:
    """The plan with every server on the pool's port, and reached through the Gateway only."""
    return replace(
        through_gateway(plan),
        deployment=replace(
            plan.deployment,
            instances=tuple(_on_port(each, port, engine) for each in plan.deployment.instances),
        ),
    )


def picker_config(plan: Plan, *, by_length: bool) -> dict[str, Any]:
    """The EndpointPickerConfig: which pods may take a request, and which of them takes it."""
    instances = plan.deployment.instances
    caching = any(i.engine_args.get("enable_prefix_caching") is not False for i in instances)
    scorers = {k: v for k, v in _SCORERS.items() if caching or k != "prefix-cache-scorer"}
    length = {
        "type": "context-length-aware",
        "parameters": {"label": RANGE_LABEL, "enableFiltering": True},
    }
    filters = [length] if by_length else []
    picker = "max-score-picker"
    return {
        "apiVersion": "llm-d.ai/v1alpha1",
        "kind": "EndpointPickerConfig",
        "plugins": [*filters, *({"type": name} for name in (*scorers, picker))],
        "schedulingProfiles": [
            {
                "name": "default",
                "plugins": [
                    *({"pluginRef": each["type"]} for each in filters),
                    *({"pluginRef": name, "weight": weight} for name, weight in scorers.items()),
                    {"pluginRef": picker},
                ],
            }
        ],
    }


def _on_port(instance: Instance, port: int, engine: EngineFacts) -> Instance:
    own = port_of(instance, engine)
    if own == port:
        return instance
    decision = Decision(
        id=f"{instance.name}.port",
        subject=instance.name,
        dest="port",
        value=port,
        reason=f"not {own} as in the plan, which lets servers share a host: an InferencePool asks "
        "all of its pods on the same ports, and each pod has an address of its own",
        source=Source(SourceKind.DOCS, f"{_POOL_CODE}#podUpdateOrAddIfNotExist"),
    )
    args = instance.engine_args
    kept = tuple(arg for arg in args if arg.dest != "port")
    changed = (*kept, EngineArg(dest="port", value=port, origin=decision))
    return replace(instance, engine_args=replace(args, args=changed))


def _values_view(plan: Plan, pool: str, port: int) -> dict[str, Any]:
    place = plan.environment
    scope = ["-n", place.namespace] if place.namespace else []
    install = ["helm", "upgrade", "--install", pool, CHART, "--version", CHART_VERSION]
    return {
        "header": f"Values of llm-d's chart llm-d-router-gateway {CHART_VERSION} for the plan "
        f"{plan.name}, for vLLM {plan.vllm_version}; written by vllm-advisor {__version__}.",
        "install": shlex.join([*install, *scope, "-f", "router-values.yaml"]),
        "port": port,
        "provider": (place.gateway_provider or GatewayProvider.NONE).value,
        "plugins_file": PLUGINS_FILE,
        "names": _names_view(plan),
        "retrieving": [route.request_class for route in plan.routes if route.retrieve],
    }


def _route_view(plan: Plan, pool: str) -> dict[str, Any]:
    place = plan.environment
    return {
        "metadata": metadata_of(pool, place, {**place.labels, **plan_labels(plan)}),
        "pool": pool,
        "place": place,
    }


def _requests(plan: Plan, pool: str) -> list[str]:
    """Where an application sends the requests of each class: all to one place, by one name."""
    place = plan.environment
    through = f"Gateway {place.gateway_name}" if place.gateway_name else f"InferencePool {pool}"
    host = f" (host {place.ingress_host})" if place.gateway_name and place.ingress_host else ""
    return [
        f"{route.request_class}: "
        + ("passages found by retrieval " if route.retrieve else "")
        + f"to the {through}{host}, path /v1, model {common_names(plan)[0]}"
        for route in plan.routes
    ]


def _names_view(plan: Plan) -> dict[str, Any]:
    """The names that every server answers to, and those that only some do."""
    common = common_names(plan)
    instances = plan.deployment.instances
    every = dict.fromkeys(name for each in instances for name in served_names(each.engine_args))
    return {"common": common, "others": [name for name in every if name not in common]}


def _check_one_name(plan: Plan) -> None:
    if not common_names(plan):
        raise OutputError(
            "the instances have no served model name in common, and behind one InferencePool any "
            "of them may be asked",
            where="deployment.instances",
            fix="use the target kubernetes, whose instances have addresses of their own",
        )


def _artifact(name: str, view: dict[str, Any]) -> Artifact:
    return Artifact(path=f"{TARGET}/{name}", text=render_template(f"llm-d/{name}.j2", view))
