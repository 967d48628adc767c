"""Our own plan.yaml as a source: the instances it plans, with their arguments as they stand."""

from __future__ import annotations

from collections.abc import Sequence

from vllm_advisor.parse.deployed import Deployed, ServedInstance, repeated_keys
from vllm_advisor.parse.images import EngineOf, read_image
from vllm_advisor.parse.parsed_command import ParsedCommand
from vllm_advisor.parse.placed import Placed
from vllm_advisor.parse.remarks import UnknownFlag
from vllm_advisor.parse.yaml_tree import YamlDocument, YamlValue
from vllm_advisor.types.engine import EngineArg, EngineArgs, EngineFacts
from vllm_advisor.units import ceil_div

KIND = "plan"
_IMAGE = "vllm/vllm-openai"


def read_plan_source(documents: Sequence[YamlDocument], file: str, engine_of: EngineOf) -> Deployed:
    """The instances of a plan, for the vLLM version that it names."""
    instances: list[ServedInstance] = []
    for document in documents[:1]:
        root = document.root
        version = root.at("vllm_version").placed_string()
        image = read_image(f"{_IMAGE}:v{version.value}", version.location) if version else None
        engine = engine_of(image)
        instances += [
            _instance(root, one, engine, version)
            for one in root.at("instances").items()
            if one.mapping()
        ]
    return Deployed(
        kind=KIND,
        file=file,
        instances=tuple(instances),
        notes=tuple(repeated_keys(documents)),
    )


def _instance(
    root: YamlValue, one: YamlValue, engine: EngineFacts, version: Placed[str] | None
) -> ServedInstance:
    gpu = root.at("hardware", "gpu").placed_string()
    gpus = one.at("gpus").placed_integer()
    per_node = root.at("hardware", "gpu_count").placed_integer()
    nodes = None
    if gpus is not None and per_node is not None and per_node.value > 0:
        nodes = Placed(ceil_div(gpus.value, per_node.value), gpus.location)
        gpus = Placed(min(gpus.value, per_node.value), gpus.location)
    return ServedInstance(
        command=_command(root, one, engine),
        kind=KIND,
        name=one.at("name").string(),
        location=one.location,
        vllm_version=version,
        gpu_names=(gpu,) if gpu else (),
        gpus=gpus,
        nodes=nodes,
    )


def _command(root: YamlValue, one: YamlValue, engine: EngineFacts) -> ParsedCommand:
    model = root.at("model")
    entries = list(one.at("engine_args").entries())
    known = [entry for entry in entries if entry.key in engine.flags]
    args = (EngineArg(dest=entry.key, value=entry.value, origin=entry.location) for entry in known)
    return ParsedCommand(
        model=model.string(),
        engine_args=EngineArgs(model=model.string(), args=tuple(args), model_origin=model.location),
        location=one.at("engine_args").location,
        env={},
        env_locations={},
        unknown=tuple(
            UnknownFlag(f"--{entry.key.replace('_', '-')}", entry.location)
            for entry in entries
            if entry.key not in engine.flags
        ),
    )
