"""A text of any kind -> what it deploys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from vllm_advisor.errors import InputError
from vllm_advisor.parse.compose.project import read_compose
from vllm_advisor.parse.config_file import read_config
from vllm_advisor.parse.deployed import Deployed
from vllm_advisor.parse.dockerfile import read_dockerfile
from vllm_advisor.parse.helm.production_stack import read_production_stack
from vllm_advisor.parse.images import EngineOf
from vllm_advisor.parse.kinds import KINDS, Kind, kind_of
from vllm_advisor.parse.kubernetes.instances import read_kubernetes
from vllm_advisor.parse.plan_source import read_plan_source
from vllm_advisor.parse.shell_source import read_shell_source
from vllm_advisor.parse.systemd import read_systemd
from vllm_advisor.parse.yaml_tree import YamlDocument, load_yaml

_OF_TEXT: Mapping[Kind, Callable[[str, str, EngineOf], Deployed]] = {
    "serve": read_shell_source,
    "shell": read_shell_source,
    "systemd": read_systemd,
    "dockerfile": read_dockerfile,
}
_OF_YAML: Mapping[Kind, Callable[[Sequence[YamlDocument], str, EngineOf], Deployed]] = {
    "kubernetes": read_kubernetes,
    "helm-production-stack": read_production_stack,
    "compose": read_compose,
    "config": read_config,
    "plan": read_plan_source,
}


def read_source(text: str, name: str, engine_of: EngineOf, *, kind: Kind | None = None) -> Deployed:
    """Read one text.

    Args:
        text: what stands in it.
        name: its name in places.
        engine_of: facts of the version that an image states.
        kind: one of :data:`~vllm_advisor.parse.kinds.KINDS`; None to find it out.

    Raises:
        InputError: the kind cannot be told, or the text is none of its kind.
    """
    kind = kind or kind_of(name, text)
    if kind is None:
        raise InputError(
            "this is nothing that starts vLLM, as far as can be told",
            where=name,
            fix=f"say what it is with --kind: {', '.join(KINDS)}",
        )
    if kind in _OF_TEXT:
        return _OF_TEXT[kind](text, name, engine_of)
    return _OF_YAML[kind](load_yaml(text, name), name, engine_of)
