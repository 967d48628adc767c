"""Where production-stack's values say what a rule asks for."""

from __future__ import annotations

from vllm_advisor.parse.deployed import Deployed
from vllm_advisor.parse.yaml_tree import YamlValue
from vllm_advisor.rules.protocol import Subject

KIND = "helm-production-stack"


def model_spec(subject: Subject) -> YamlValue | None:
    """The item of ``modelSpec`` that a server is made of; None for servers of other sources."""
    instance = subject.instance
    if instance is None or instance.kind != KIND or instance.pod is None:
        return None
    return instance.pod.owner.view


def prefix_caching_left_out(subject: Subject) -> YamlValue | None:
    """``vllmConfig`` without ``enablePrefixCaching``: the chart then switches it off."""
    spec = model_spec(subject)
    if spec is None or not spec.at("vllmConfig").mapping():
        return None
    if spec.at("vllmConfig", "enablePrefixCaching"):
        return None
    off = subject.args.get("enable_prefix_caching") is False
    return spec.at("vllmConfig") if off else None


def part(deployed: Deployed, name: str) -> YamlValue | None:
    """``routerSpec``, ``servingEngineSpec`` or another part; None where it is not in the source."""
    found = deployed.of_kind(name) if deployed.kind == KIND else ()
    return found[0].view if found else None
