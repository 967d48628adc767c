"""The keys of workload.yaml: their types, their limits and what each means.

Pydantic models, because a person writes this file and an editor reads its JSON Schema. They say
what is allowed; ``workload_problems`` turns what is not into plain words, and ``workloads`` turns
what is into ``types.workload``. Every description is shown to the user as the remedy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from packaging.version import InvalidVersion, Version
from pydantic import AfterValidator, ConfigDict, Discriminator, Field, Tag

from vllm_advisor.knowledge.environment_file import EnvironmentKeys
from vllm_advisor.knowledge.workload_hardware import Hardware
from vllm_advisor.knowledge.workload_limits import (
    ConstraintsKeys,
    LoraKeys,
    PricesKeys,
    RagKeys,
    RoutingKeys,
)
from vllm_advisor.knowledge.workload_values import (
    LARGEST_CONTEXT,
    UNREADABLE,
    Count,
    Keys,
    Line,
    Name,
    Positive,
    PrefixTokens,
    Problem,
    Tokens,
    unreadable,
)
from vllm_advisor.types.workload import Feature, Needs, Objective

RATES = ("concurrent_requests", "requests_per_second", "batch")


def _model_reference(text: str) -> str:
    if text != text.strip() or text.startswith("-"):
        raise unreadable(f"{text[:40]!r} starts with a hyphen or has space around it")
    return text


def _version(text: str) -> str:
    try:
        return str(Version(text))
    except InvalidVersion:
        raise unreadable(f"{text[:40]!r} is no version") from None


class Spread(Keys):
    """Median, 95th percentile and largest number of tokens per request."""

    p50: Tokens = Field(description="Median: half of the requests are no longer.")
    p95: Tokens = Field(description="95th percentile; measured, never guessed from the median.")
    max: Tokens = Field(description="The longest that has to be served; sizes --max-model-len.")

    def problems(self) -> Iterator[Problem]:
        """The three have to be in order."""
        for low, high in (("p50", "p95"), ("p95", "max")):
            below, above = getattr(self, low), getattr(self, high)
            if above < below:
                what = f"{above:,} is below {low}, which is {below:,}"
                yield Problem(path=(high,), what=what, fix="keep p50 <= p95 <= max")


class Longest(Keys):
    """Only the longest is known: every request may be that long."""

    max: Tokens = Field(description="The longest that has to be served; sizes --max-model-len.")


def _distribution_form(value: Any) -> str | None:
    if isinstance(value, dict):
        return "<longest>" if set(value) == {"max"} else "<spread>"
    return None if value is None or isinstance(value, (bool, list)) else "<exact>"


Distribution = Annotated[
    Annotated[Tokens, Tag("<exact>")]
    | Annotated[Spread, Tag("<spread>")]
    | Annotated[Longest, Tag("<longest>")],
    Discriminator(
        _distribution_form,
        custom_error_type=UNREADABLE,
        custom_error_message="neither a number of tokens nor a mapping of p50, p95 and max",
    ),
]


class Slo(Keys):
    """Latency targets at the 95th percentile, in milliseconds."""

    ttft_ms: Positive | None = Field(None, description="Time to the first token.")
    itl_ms: Positive | None = Field(None, description="Time between two output tokens.")
    e2e_ms: Positive | None = Field(None, description="Time to the last token.")


class Batch(Keys):
    """A pile of requests to be done by a deadline."""

    requests: Annotated[int, Field(ge=1, le=10**12)] = Field(description="Requests in the pile.")
    within_hours: Positive = Field(description="Hours in which all of them have to be done.")


class RequestClassKeys(Keys):
    """One kind of request: how long, how many, how fast and what its answer needs."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": [rate]} for rate in RATES]},
    )

    name: Name = Field(
        description="Lower-case letters, digits and inner hyphens, at most 40: it becomes part of "
        "file names, Kubernetes names and served model names."
    )
    prompt_tokens: Distribution = Field(
        description="Prompt length with its template, history and documents: {p50, p95, max}, "
        "{max} alone, or one number that every request has."
    )
    output_tokens: Distribution = Field(
        description="Answer length, reasoning included: {p50, p95, max}, {max} alone or a number."
    )
    concurrent_requests: Count | None = Field(
        None, description="Requests in flight at the same time, at the peak."
    )
    requests_per_second: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] | None = Field(
        None, description="Requests arriving per second, at the peak."
    )
    batch: Batch | None = Field(
        None, description="Requests to be done by a deadline; their objective is throughput."
    )
    shared_prefix_tokens: PrefixTokens = Field(
        0, description="First tokens that are the same in every request, such as a system prompt."
    )
    requests_per_document: Annotated[float, Field(ge=1, le=1e6, allow_inf_nan=False)] = Field(
        1.0, description="How often the same document or conversation is sent in a row; 1 or more."
    )
    needs: Annotated[Needs, Field(strict=False)] = Field(
        Needs.WHOLE_DOCUMENT,
        description="What an answer needs: lookup (a few passages, retrieval can find them), "
        "whole_document (all of it) or recent_only (the far past may be lost).",
    )
    exact_recall: bool = Field(
        default=False, description="No token of the prompt may be evicted or slid out of view."
    )
    objective: Annotated[Objective, Field(strict=False)] = Field(
        Objective.LATENCY, description="latency or throughput."
    )
    slo: Slo | None = Field(None, description="Latency targets at the 95th percentile.")

    def problems(self) -> Iterator[Problem]:
        """One rate, a possible prefix, a possible length."""
        given = [rate for rate in RATES if getattr(self, rate) is not None]
        if len(given) != 1:
            what = f"{' and '.join(given)} are both given" if given else "no rate is given"
            yield Problem(path=tuple(given[1:2]), what=what, fix=f"give one of {', '.join(RATES)}")
        if (
            self.batch
            and self.objective is Objective.LATENCY
            and "objective" in self.model_fields_set
        ):
            fix = "remove objective, or give a rate instead of batch"
            what = "latency contradicts batch, whose objective is throughput"
            yield Problem(path=("objective",), what=what, fix=fix)
        prompt, output = spread_of(self.prompt_tokens), spread_of(self.output_tokens)
        if self.shared_prefix_tokens > prompt.p50:
            what = (
                f"{self.shared_prefix_tokens:,} is more than the median prompt, "
                f"whose {prompt.p50:,} tokens include the prefix"
            )
            fix = "lower it, or count the prefix into prompt_tokens"
            yield Problem(path=("shared_prefix_tokens",), what=what, fix=fix)
        if (total := prompt.max + output.max) > LARGEST_CONTEXT:
            what = f"with its output a request has up to {total:,} tokens; no model reads more than"
            fix = "split the documents, or check the unit of max"
            path = ("prompt_tokens",)
            yield Problem(path=path, what=f"{what} {LARGEST_CONTEXT:,}", fix=fix)


def spread_of(tokens: int | Spread | Longest) -> Spread:
    """The three percentiles of any of the three ways to write a distribution."""
    if isinstance(tokens, Spread):
        return tokens
    size = tokens if isinstance(tokens, int) else tokens.max
    return Spread(p50=size, p95=size, max=size)


class WorkloadKeys(Keys):
    """What is served, on what, for whom, and within which limits: the input of `plan`."""

    model_config = ConfigDict(title="vllm-advisor workload")

    model: Annotated[Line, AfterValidator(_model_reference)] = Field(
        description="Hugging Face id, bundled model, folder with config.json, or a config.json."
    )
    hardware: Hardware = Field(
        description="local (this machine), {gpu, count, nodes}, {node_labels} or {described}."
    )
    vllm_version: Annotated[str, AfterValidator(_version)] | None = Field(
        None, description='vLLM release to plan for, in quotes: "0.33.0".'
    )
    name: Name | None = Field(
        None,
        description="Name of the plan: lower-case letters, digits and inner hyphens, at most 40. "
        "The file's own name unless given.",
    )
    uses: list[Annotated[Feature, Field(strict=False)]] = Field(
        default_factory=list, description="What the application uses of the server."
    )
    lora: LoraKeys | None = Field(None, description="LoRA adapters; needs `uses: [lora]`.")
    images_per_prompt: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        None, description="Most images in one prompt; needs `uses: [vision]`."
    )
    classes: list[RequestClassKeys] = Field(
        min_length=1, max_length=100, description="The kinds of request."
    )
    rag: RagKeys | None = Field(None, description="Retrieval on the application's side.")
    constraints: ConstraintsKeys | None = Field(None, description="What the plan may not do.")
    prices: PricesKeys | None = Field(None, description="Your prices.")
    routing: RoutingKeys | None = Field(
        None, description="How requests are told apart, and how conversations are kept short."
    )
    environment: EnvironmentKeys | None = Field(
        None, description="Where it is deployed: names, registry, storage. Never changes the plan."
    )


class TrafficKeys(Keys):
    """The part of a workload that says what requests there are: enough for `check`."""

    model_config = ConfigDict(title="vllm-advisor traffic")

    classes: list[RequestClassKeys] = Field(
        min_length=1, max_length=100, description="The kinds of request."
    )
    rag: RagKeys | None = Field(None, description="Retrieval on the application's side.")
    constraints: ConstraintsKeys | None = Field(None, description="What the plan may not do.")
