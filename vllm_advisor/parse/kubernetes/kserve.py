"""What KServe makes of its objects: the command of its presets, and the model's id of its URI.

The preset of an LLMInferenceService (kserve config/llmisvcconfig/config-llm-template.yaml) runs
``eval "exec vllm serve ... $@"``: names, port and tensor parallel size come from the object, the
container's ``args`` go through Go's templates and a shell once more.
"""

from __future__ import annotations

import re

from vllm_advisor.parse.container import Container
from vllm_advisor.parse.images import EngineOf
from vllm_advisor.parse.kubernetes.commands import environment, words_at
from vllm_advisor.parse.kubernetes.objects import PodSource
from vllm_advisor.parse.parsed_command import ParsedCommand, parse_serve_command
from vllm_advisor.parse.placed import PlacedText
from vllm_advisor.parse.shell import Token, read_script
from vllm_advisor.parse.yaml_tree import YamlValue
from vllm_advisor.types.decision import Location

_TEMPLATE = re.compile(r"\{\{\s*(?:`(?P<text>[^`]*)`|\.(?P<name>[\w.]+))\s*\}\}")
_PORT = "8000"
_PARALLEL = {
    "tensor": "--tensor-parallel-size",
    "data": "--data-parallel-size",
    "dataLocal": "--data-parallel-size-local",
}
# Flags of KServe's own server around vLLM (python/huggingfaceserver), which takes vLLM's as well.
_OF_SERVER = frozenset((
    "--backend", "--disable_log_stats_kserve", "--enable_docs_url", "--grpc_port", "--http_port",
    "--max_length", "--model_dir", "--model_name", "--predictor_host", "--return_probabilities",
    "--workers",
))  # fmt: skip


def preset_command(
    view: YamlValue, container: Container, pod: PodSource, engine_of: EngineOf
) -> ParsedCommand:
    """The ``vllm serve`` that the preset runs for a container without a command of its own."""
    owner = pod.owner.view
    spec = owner.at("spec")
    words = _given(spec, pod)
    env = environment(container, {})
    for text in words_at(view.at("args"), env).texts:
        words += _evaluated(_filled_in(text, pod), env)
    return parse_serve_command(
        words,
        engine_of(container.image),
        env=env,
        image=container.image.text if container.image else "",
    )


def hub_model(uri: str) -> str:
    """``hf://ORG/NAME[:REVISION]`` as vLLM names the model; any other URI as it is."""
    if not uri.startswith("hf://"):
        return uri
    return uri.removeprefix("hf://").partition(":")[0]


def model_server_command(
    view: YamlValue, container: Container, engine_of: EngineOf
) -> ParsedCommand:
    """The arguments that the ``model`` of an InferenceService gives to KServe's model server."""
    env = environment(container, {})
    tokens = [text.token() for text in words_at(view.at("args"), env).texts]
    words: list[Token] = []
    while tokens:
        token = tokens.pop(0)
        name, equals, value = token.text.partition("=")
        if name.replace("-", "_").replace("__", "--", 1) in _OF_SERVER:
            if not equals and tokens and not tokens[0].text.startswith("-"):
                tokens.pop(0)
        elif name in ("--model_id", "--model-id"):
            words.append(token._replace(text=f"--model={value}" if equals else "--model"))
        else:
            words.append(token)
    uri = view.at("storageUri").placed_string()
    if uri is not None and not any(word.text.startswith("--model") for word in words):
        words = [Token("--model", uri.location), Token(hub_model(uri.value), uri.location), *words]
    return parse_serve_command(
        words, engine_of(container.image), env=env, complete=False, where=view.location
    )


def _given(spec: YamlValue, pod: PodSource) -> list[Token]:
    """The words that come from the object's own fields."""
    model = spec.at("model")
    uri, name = model.at("uri").placed_string(), model.at("name").placed_string()
    words = [Token("vllm", model.location), Token("serve", model.location)]
    if uri is not None:
        words.append(Token(hub_model(uri.value), uri.location))
        if ":" in uri.value.removeprefix("hf://") and uri.value.startswith("hf://"):
            words += _pair("--revision", uri.value.rpartition(":")[2], uri.location)
    if name is not None:
        words += _pair("--served-model-name", name.value, name.location)
    words += _pair("--port", _PORT, model.location)
    parallel = spec.at(pod.role, "parallelism") if pod.role == "prefill" else spec.at("parallelism")
    for key, flag in _PARALLEL.items():
        if (size := parallel.at(key).placed_integer()) is not None:
            words += _pair(flag, str(size.value), size.location)
    return words


def _pair(flag: str, value: str, place: Location) -> list[Token]:
    return [Token(flag, place), Token(value, place)]


def _filled_in(text: PlacedText, pod: PodSource) -> PlacedText:
    """What KServe's own templating makes of a word."""
    owner = pod.owner
    names = {
        "ObjectMeta.Name": owner.name,
        "ObjectMeta.Namespace": owner.namespace or "default",
        "Spec.Model.Name": owner.view.at("spec", "model", "name").string(),
    }
    return text.replaced(
        _TEMPLATE, lambda m: m["text"] if m["text"] is not None else names.get(m["name"])
    )


def _evaluated(text: PlacedText, env: dict[str, Token]) -> list[Token]:
    """The words that the preset's shell makes of one."""
    script = read_script(text.text, text.file, locate=text.locate, env=env)
    return [word for command in script.commands for word in command.words]
