"""What kind of file a text is, by its name and by what stands in it."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TypeAlias

from vllm_advisor.errors import InputError
from vllm_advisor.parse.kubernetes.objects import CONTAINER_KEYS, POD_KEYS
from vllm_advisor.parse.yaml_tree import load_yaml

Kind: TypeAlias = str
KINDS: tuple[Kind, ...] = (
    "serve", "shell", "kubernetes", "helm-production-stack", "compose", "systemd", "config", "plan",
    "dockerfile",
)  # fmt: skip
_BY_SUFFIX = {".sh": "shell", ".bash": "shell", ".service": "systemd"}
_COMPOSE_NAME = re.compile(r"(?:docker-)?compose[\w.-]*\.ya?ml", re.IGNORECASE)
_DOCKERFILE_NAME = re.compile(r"(?:[\w.-]*\.)?(?:Dockerfile|Containerfile)(?:\.[\w.-]+)?")
_UNIT = re.compile(r"^[ \t]*(?:ExecStart[ \t]*=|\[Service\][ \t\r]*$)", re.MULTILINE)
_FROM = re.compile(r"(?:[ \t\r]*(?:#.*|ARG .*)?\n)*[ \t]*FROM[ \t]+\S+", re.IGNORECASE)
_INSTRUCTION = re.compile(r"^[ \t]*(?:CMD|ENTRYPOINT)\s", re.MULTILINE)
_COMMAND = re.compile(r"\bvllm\b|^[ \t]*--[a-z]|[\"(][ \t]*[\"']?--[a-z]", re.MULTILINE)
# A key at the left edge, or of an item of a list there. A colon inside of a word is none.
_KEY = re.compile(r"^([\"']?)([A-Za-z_][\w./-]*)\1\s*:(?=\s|$)", re.MULTILINE)
_FIRST_ITEM = re.compile(r"(?:[ \t\r]*(?:#.*)?\n)*-( +)")
_STACK_KEYS = {
    "servingEngineSpec", "routerSpec", "cacheserverSpec", "modelSpec", "modelURL", "vllmConfig",
}  # fmt: skip
_PLAN_KEYS = {"schema_version", "instances", "decisions"}
_COMPOSE_KEYS = {"healthcheck", "entrypoint", "environment", "shm_size", "depends_on"}
_CONFIG_KEYS = {
    "api-key", "attention-backend", "block-size", "chat-template", "compilation-config",
    "data-parallel-size", "download-dir", "dtype", "enable-auto-tool-choice",
    "enable-chunked-prefill", "enable-expert-parallel", "enable-lora", "enable-prefix-caching",
    "enforce-eager", "gpu-memory-utilization", "hf-overrides", "host", "kv-cache-dtype",
    "kv-transfer-config", "limit-mm-per-prompt", "load-format", "max-model-len",
    "max-num-batched-tokens", "max-num-seqs", "model", "pipeline-parallel-size", "port",
    "quantization", "reasoning-parser", "seed", "served-model-name", "speculative-config",
    "swap-space", "tensor-parallel-size", "tokenizer", "tool-call-parser", "trust-remote-code",
}  # fmt: skip
_VALUES_KEYS = {"decode", "kserve", "prefill"}  # of the charts of llm-d and KServe
_METRIC = re.compile(r"\bvllm[:_][a-z]")  # in a query of Prometheus, an autoscaler's trigger
_IMAGE_BELOW = re.compile(r"^[ \t]+[\"']?(?:image|command)[\"']?[ \t]*:", re.MULTILINE)
_COMMAND_TEXT = re.compile(
    r"^command[ \t]*:[ \t]*(?:[|>][-+\d]*[ \t]*(?:#.*)?$|[^\s\[|>-])", re.MULTILINE
)


def kind_of(name: str, text: str) -> Kind | None:
    """The kind of a text, or None where nothing tells it.

    Args:
        name: its file's name, or ``-``.
        text: what stands in it.
    """
    base = PurePath(name).name
    if (kind := _BY_SUFFIX.get(PurePath(base).suffix.lower())) is not None:
        return kind
    if is_dockerfile(base):
        return "dockerfile"
    keys = _keys(text)
    named_so = bool(keys) and _COMPOSE_NAME.fullmatch(base) is not None
    if ("services" in keys or named_so) and not {"apiVersion", "kind"} & keys:
        return "compose"
    return _of_keys(keys, text) or _of_plain(text, named=bool(PurePath(base).suffix))


def is_dockerfile(name: str) -> bool:
    """Whether a file is a Dockerfile by its name."""
    return _DOCKERFILE_NAME.fullmatch(name) is not None


def checked_kind(kind: str) -> Kind:
    """A kind that somebody names.

    Raises:
        InputError: there is none of this name.
    """
    if kind not in KINDS:
        raise InputError(
            f"there is no kind of source {kind!r}",
            where="kind",
            fix=f"choose from {', '.join(KINDS)}",
        )
    return kind


def _of_keys(keys: set[str], text: str) -> Kind | None:
    """The kind of a YAML mapping, or of a list of them, by its keys."""
    plain = {key.replace("_", "-") for key in keys}
    kind: Kind | None = None
    if {"apiVersion", "kind"} & keys:
        kind = "kubernetes"
    elif _STACK_KEYS & keys:
        kind = "helm-production-stack"
    elif keys >= _PLAN_KEYS:
        kind = "plan"
    elif _COMPOSE_KEYS & keys or ("command" in keys and _COMMAND_TEXT.search(text)):
        kind = "compose"
    elif (CONTAINER_KEYS | POD_KEYS | _VALUES_KEYS | {"spec"}) & keys:
        kind = "kubernetes"
    elif keys and 2 * len(plain & _CONFIG_KEYS) >= len(keys):
        kind = "config"
    elif keys and _IMAGE_BELOW.search(text):
        kind = "compose"
    elif keys and _METRIC.search(text):
        kind = "kubernetes"
    return kind


def _of_plain(text: str, *, named: bool) -> Kind | None:
    """The kind of a text without keys."""
    if _UNIT.search(text):
        return "systemd"
    if _FROM.match(text) and _INSTRUCTION.search(text):
        return "dockerfile"
    if _FIRST_ITEM.match(text) and not named:
        return "kubernetes"  # arguments, item by item
    return "shell" if _COMMAND.search(text) else None


def _keys(text: str) -> set[str]:
    """The keys of a YAML text that stand at its left edge, or those of a text in flow style."""
    if _UNIT.search(text):
        return set()
    stripped = text.lstrip()
    if stripped.startswith(("{", "[")) and not stripped.startswith("[Unit]"):
        try:
            documents = load_yaml(text, "-")
        except InputError:
            return set()
        found = [d.data[0] if isinstance(d.data, list) and d.data else d.data for d in documents]
        return {str(key) for data in found if isinstance(data, dict) for key in data}
    if item := _FIRST_ITEM.match(text):  # what is indented like its keys stands at the edge
        text = re.sub(rf"^[- ] {{{len(item[1])}}}", "", text, flags=re.MULTILINE)
    return {match[2] for match in _KEY.finditer(text)}
