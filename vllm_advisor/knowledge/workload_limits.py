"""The sections of workload.yaml beside the traffic: adapters, retrieval, limits and prices."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from vllm_advisor.knowledge.workload_values import UNREADABLE, Count, Keys, Positive, Price, Tokens

# vllm:0.33.0:vllm/config/cache.py#CacheDType, with ROCm's own.
KVCacheDtype = Literal[
    "auto",
    "float16",
    "bfloat16",
    "fp8",
    "fp8_e4m3",
    "fp8_e5m2",
    "fp8_inc",
    "fp8_ds_mla",
    "nvfp4_ds_mla",
    "turboquant_k8v4",
    "turboquant_4bit_nc",
    "turboquant_k3v4_nc",
    "turboquant_3bit_nc",
    "octave_k3v4",
    "octave_k3v3",
    "octave_k3v3_compact",
    "ultraquant_4bit",
    "int4_per_token_head",
    "int8_per_token_head",
    "fp8_per_token_head",
    "nvfp4",
    "nvfp4_4over6",
]
# What vLLM 0.33.0 can apply to 16-bit weights while it loads them, and the precisions that
# publishers' quantized checkpoints of a model come in (vllm-project/recipes, `precision`).
WeightQuantization = Literal[
    "fp8",
    "fp8_per_tensor",
    "fp8_per_block",
    "fp8_per_channel",
    "int8_per_channel_weight_only",
    "mxfp8",
    "nvfp4_per_token",
    "nvfp4",
    "mxfp4",
    "int8",
    "int4",
]
LoraRank = Literal[1, 8, 16, 32, 64, 128, 256, 320, 512]  # choices of --max-lora-rank


class LoraKeys(Keys):
    """Adapters served beside the base model."""

    max_loras: Annotated[int, Field(ge=1, le=1024)] = Field(
        1, description="Adapters active in one batch."
    )
    max_lora_rank: LoraRank = Field(16, description="Largest rank: 1, 8, 16, 32, 64, 128, ...")


class RagKeys(Keys):
    """Retrieval on the application's side."""

    available: bool = Field(description="Whether the application can retrieve passages.")
    top_k: Annotated[int, Field(ge=1, le=10_000)] = Field(
        5, description="Passages put into the prompt."
    )
    chunk_tokens: Tokens = Field(800, description="Tokens of one passage.")
    question_tokens: Tokens | None = Field(
        None, description="Tokens of question and instructions that stay beside the passages."
    )


def _quantization_form(value: Any) -> str | None:
    return {"forbidden": "<none>"}.get(value) if isinstance(value, str) else "<methods>"


class ConstraintsKeys(Keys):
    """What the plan may and may not do."""

    weight_quantization: Annotated[
        Annotated[Literal["forbidden"], Tag("<none>")]
        | Annotated[list[WeightQuantization], Field(min_length=1), Tag("<methods>")],
        Discriminator(
            _quantization_form,
            custom_error_type=UNREADABLE,
            custom_error_message="weight_quantization is `forbidden` or a list such as [fp8]",
        ),
    ] = Field(
        default=["fp8"],
        description="Methods that may be used on the weights, or `forbidden`; [fp8] unless given.",
    )
    kv_cache_dtypes: list[KVCacheDtype] = Field(
        default=["auto", "fp8"],
        min_length=1,
        description="Values allowed for --kv-cache-dtype; [auto, fp8] unless given. auto is the "
        "model's own dtype.",
    )
    max_gpus: Count | None = Field(None, description="GPUs the plan may use.")
    budget_usd_per_hour: Positive | None = Field(None, description="Most the plan may cost.")
    exact_recall: bool = Field(default=False, description="exact_recall for every class.")
    trust_remote_code: bool = Field(
        default=False, description="Whether code of the model's repository may be run."
    )
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | None = Field(
        None, description="Share of a GPU's memory for vLLM, above 0 and at most 1."
    )
    short_context_tokens: Tokens = Field(
        8192, description="Up to here, prompt and output together count as short."
    )


class PricesKeys(Keys):
    """Your prices; they win over the bundled ones."""

    gpu_hour_usd: Price | None = Field(None, description="One GPU for one hour.")
    input_usd_per_million_tokens: Price | None = Field(
        None, description="A million prompt tokens of the service you compare with."
    )
    output_usd_per_million_tokens: Price | None = Field(
        None, description="A million output tokens of the service you compare with."
    )
    cached_input_usd_per_million_tokens: Price | None = Field(
        None,
        description="A million prompt tokens that are read from the cache; 0 unless given, since "
        "vLLM does not compute them again.",
    )


class RoutingKeys(Keys):
    """How requests are told apart, and how conversations are kept short."""

    bytes_per_token: Annotated[float, Field(ge=0.5, le=64, allow_inf_nan=False)] | None = Field(
        None,
        description="Bytes of a request's body per token of its prompt, for routers that cannot "
        "count tokens; 4 is assumed unless measured.",
    )
    bytes_margin: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] | None = Field(
        None, description="Share by which bytes_per_token may be off; 0.25 unless given."
    )
    summarise_above_tokens: Tokens | None = Field(
        None,
        description="Length from which a conversation is summarised; what the short instance "
        "takes unless given.",
    )
    keep_last_turns: Annotated[int, Field(ge=1, le=1000)] | None = Field(
        None, description="Turns that stay word for word; 4 unless given."
    )
    summary_tokens: Tokens | None = Field(
        None, description="Longest summary of the older turns; an eighth of the limit unless given."
    )
