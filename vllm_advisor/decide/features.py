"""Flags that follow from what the application uses and from the model's verified recipe."""

from __future__ import annotations

from packaging.version import Version

from vllm_advisor.decide.reasons import Scope, user, vllm
from vllm_advisor.errors import InfeasibleError
from vllm_advisor.types.decision import Decision, Rejected
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.source import Assumption, Confidence, Source, SourceKind
from vllm_advisor.types.workload import Feature, Lora, Workload

# A recipe's values for these are one machine's; the plan decides them for this one.
_DECIDED_HERE = frozenset(
    {
        "data_parallel_size",
        "decode_context_parallel_size",
        "enable_expert_parallel",
        "gpu_memory_utilization",
        "kv_cache_dtype",
        "max_model_len",
        "max_num_batched_tokens",
        "max_num_seqs",
        "pipeline_parallel_size",
        "served_model_name",
        "tensor_parallel_size",
    }
)
_VLLM_FOLDER = "examples/"
_RECIPE_FEATURES = (Feature.TOOL_CALLING, Feature.REASONING)


def check_model_runs(model: ModelFacts, workload: Workload, engine: EngineFacts) -> None:
    """Raise when this vLLM version or the user's limits rule the model out.

    Raises:
        InfeasibleError: the version is too old, or remote code is needed and forbidden.
    """
    least = model.serving.min_vllm_version
    if least and Version(engine.version) < Version(least):
        raise InfeasibleError(
            f"{model.model_id} needs vLLM {least} or later; the plan is for {engine.version}",
            where=workload.origins.get("vllm_version", "vllm_version"),
            fix=f"vllm_version: {least} or later",
        )
    if model.needs_remote_code and not workload.constraints.trust_remote_code:
        raise InfeasibleError(
            f"{model.model_id} ({model.architecture}) runs code from its repository, which the "
            "workload does not allow",
            where="constraints.trust_remote_code",
            fix="constraints: {trust_remote_code: true} after reading that code, or another model",
        )


def recipe_spreads(model: ModelFacts) -> bool:
    """The verified recipe keeps experts whole (``--enable-expert-parallel``)."""
    return bool(model.num_experts and model.serving.base_args.get("enable_expert_parallel"))


def text_only(model: ModelFacts, workload: Workload) -> bool:
    """A multimodal model whose application sends nothing but text."""
    return model.multimodal and Feature.VISION not in workload.features


def feature_decisions(
    scope: Scope, model: ModelFacts, workload: Workload, engine: EngineFacts
) -> tuple[tuple[Decision, ...], tuple[Assumption, ...]]:
    """Decisions for tool calling, reasoning, vision, LoRA, embeddings and the recipe's flags.

    Raises:
        InfeasibleError: the application uses something the model has no means for.
    """
    decisions: list[Decision] = []
    notes: list[Assumption] = []
    for feature in workload.features:
        if feature in _RECIPE_FEATURES:
            found = _from_recipe(scope, model, feature, engine)
            decisions += found
            if not found:
                notes.append(_no_recipe(model, feature))
    if Feature.STRUCTURED_OUTPUT in workload.features:
        decisions.append(
            scope.decide(
                "structured-output",
                "on",
                "structured output needs no flag: vLLM picks a backend per request",
                vllm(f"{engine.version}:vllm/config/structured_outputs.py#StructuredOutputsConfig"),
                flag=False,
            )
        )
    decisions += _vision(scope, model, workload, engine)
    if Feature.EMBEDDINGS in workload.features:
        decisions.append(
            scope.decide(
                "runner",
                "pooling",
                "the application wants embeddings: the pooling runner serves /v1/embeddings",
                user(workload.origins.get("uses", "uses")),
            )
        )
    decisions += _lora(scope, workload.lora, workload)
    taken = {d.dest for d in decisions}
    decisions += _base(scope, model, workload, engine, taken)
    return tuple(decisions), tuple(notes)


def _from_recipe(
    scope: Scope, model: ModelFacts, feature: Feature, engine: EngineFacts
) -> list[Decision]:
    flags = model.serving.features.get(feature.value, {})
    words = feature.value.replace("_", " ")
    out = []
    for dest, value in flags.items():
        if dest not in engine.flags:
            continue
        if dest == "chat_template" and str(value).startswith(_VLLM_FOLDER):
            out.append(_repository_file(scope, dest, str(value), words, model))
            continue
        reason = f"the application uses {words}; this is what {model.model_id} needs for it"
        out.append(scope.decide(dest, value, reason, _recipe_source(model)))
    return out


def _repository_file(
    scope: Scope, dest: str, value: str, words: str, model: ModelFacts
) -> Decision:
    """A file of vLLM's repository: a server elsewhere would not start with a path to it."""
    return scope.decide(
        dest.replace("_", "-"),
        value,
        f"recommended for {words}, but it is a file of vLLM's repository and not of the server's "
        "folder: the template in the tokenizer is used unless you copy it and pass --chat-template",
        _recipe_source(model),
        flag=False,
        rejected=(Rejected(option=f"--chat-template {value}", why="the path may not exist"),),
    )


def _recipe_source(model: ModelFacts) -> Source:
    return model.serving.source or Source(SourceKind.ASSUMED, "no-recipe")


def _no_recipe(model: ModelFacts, feature: Feature) -> Assumption:
    return Assumption(
        id=f"{feature.value.replace('_', '-')}-parser",
        text=f"no verified {feature.value.replace('_', ' ')} flags are known for "
        f"{model.model_id}: the plan sets none; look up its parser in vLLM's documentation",
        lowers_to=Confidence.MEDIUM,
    )


def _vision(
    scope: Scope, model: ModelFacts, workload: Workload, engine: EngineFacts
) -> list[Decision]:
    if Feature.VISION in workload.features:
        if not model.multimodal:
            raise InfeasibleError(
                f"the application sends images and {model.model_id} takes text only",
                where=workload.origins.get("uses", "uses"),
                fix="choose a vision-language model, or drop vision from uses",
            )
        images = workload.images_per_prompt
        if images is None:
            return []
        limits = dict.fromkeys(model.modalities, 0) | {"image": images}
        others = [name for name in model.modalities if name != "image"]
        return [
            scope.decide(
                "limit_mm_per_prompt",
                limits,
                f"a prompt carries at most {images} images"
                + (f" and no {' or '.join(others)}" if others else "")
                + "; vLLM reserves memory for what it might carry",
                user(workload.origins.get("images_per_prompt", "images_per_prompt")),
            )
        ]
    if not text_only(model, workload) or "language_model_only" not in engine.flags:
        return []
    return [
        scope.decide(
            "language_model_only",
            True,  # noqa: FBT003
            "the application sends text only: no memory is profiled for images"
            + (", and the encoders are not loaded" if model.drops_encoders else ""),
            model.serving.source
            if model.drops_encoders and model.serving.source
            else vllm(f"{engine.version}:vllm/config/multimodal.py#language_model_only"),
        )
    ]


def _lora(scope: Scope, lora: Lora | None, workload: Workload) -> list[Decision]:
    if lora is None:
        return []
    source = user(workload.origins.get("lora", "lora"))
    return [
        scope.decide("enable_lora", True, "adapters are served beside the base model", source),  # noqa: FBT003
        scope.decide("max_loras", lora.max_loras, "adapters in one batch", source),
        scope.decide("max_lora_rank", lora.max_lora_rank, "largest adapter rank", source),
    ]


def _base(
    scope: Scope,
    model: ModelFacts,
    workload: Workload,
    engine: EngineFacts,
    taken: set[str | None],
) -> list[Decision]:
    recipe = _recipe_source(model)
    decisions = []
    for dest, value in model.serving.base_args.items():
        if dest in _DECIDED_HERE or dest in taken or dest not in engine.flags:
            continue
        if dest == "trust_remote_code" and not workload.constraints.trust_remote_code:
            decisions.append(
                scope.decide(
                    "remote-code",
                    "not trusted",
                    f"vLLM has its own {model.architecture}; the recipe's --trust-remote-code is "
                    "left out because the workload does not allow code from the repository",
                    user(workload.origins.get("constraints", "constraints.trust_remote_code")),
                    flag=False,
                    rejected=(
                        Rejected(option="--trust-remote-code", why="not allowed by the workload"),
                    ),
                )
            )
            continue
        decisions.append(
            scope.decide(dest, value, f"part of the verified recipe of {model.model_id}", recipe)
        )
    return decisions
