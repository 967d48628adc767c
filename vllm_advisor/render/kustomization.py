"""``kustomization.yaml``, whose head tells which Secrets to make and where requests go."""

from __future__ import annotations

import shlex

from vllm_advisor.render.jinja import render_template
from vllm_advisor.render.names import object_name
from vllm_advisor.render.pod import image_repository, image_tag, is_path
from vllm_advisor.types.plan import Artifact, Plan
from vllm_advisor.version import __version__

SERVICE_PORT = 8000  # of every Service, whatever port the server listens on


def kustomization(
    plan: Plan, folder: str, files: list[str], requests: list[str] | None = None
) -> Artifact:
    """``kustomization.yaml`` over the files of a folder.

    ``requests`` says where those of each class go, if not to the Services of the instances.
    """
    place = plan.environment
    view = {
        "header": f"Plan {plan.name} for vLLM {plan.vllm_version}; written by vllm-advisor "
        f"{__version__}. PLAN.md has the whole reasoning.",
        "place": place,
        "files": files,
        "secret_commands": secret_commands(plan),
        "addresses": addresses(plan) if requests is None else requests,
        "image_repository": image_repository(place),
        "image_tag": image_tag(plan),
    }
    return Artifact(
        path=f"{folder}/kustomization.yaml",
        text=render_template("kubernetes/kustomization.yaml.j2", view),
    )


def addresses(plan: Plan) -> list[str]:
    """Where an application sends the requests of each class."""
    scope = f".{plan.environment.namespace}" if plan.environment.namespace else ""
    urls = {
        i.name: f"http://{object_name(plan, i)}{scope}:{SERVICE_PORT}/v1"
        for i in plan.deployment.instances
    }
    return [
        f"{route.request_class}: "
        + ("passages found by retrieval " if route.retrieve else "")
        + f"to {urls[route.instance]}, model {route.instance}"
        + (f"; else {route.fallback}" if route.fallback else "")
        for route in plan.routes
        if route.instance in urls
    ]


def secret_commands(plan: Plan) -> list[str]:
    """How the Secrets that pods refer to are made; the values are the reader's."""
    place = plan.environment
    hub = not is_path(plan.model)
    wanted = (
        (place.api_key_secret, place.api_key_key, "$(openssl rand -hex 32)"),
        (place.hf_token_secret if hub else None, place.hf_token_key, "$HF_TOKEN"),
    )
    scope = ["-n", place.namespace] if place.namespace else []
    return [
        shlex.join(["kubectl", "create", "secret", "generic", name, *scope])
        + f' --from-literal={key}="{value}"'
        for name, key, value in wanted
        if name
    ]
