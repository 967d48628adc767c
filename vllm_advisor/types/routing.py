"""Where a request goes, as data: what ``routing.yaml`` holds and every router is rendered from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

from vllm_advisor.types.routing_costs import ClassCost, RouteCost, TokenPrices
from vllm_advisor.types.workload import Needs

HEADER = "x-workload"  # a client names a route with it; LiteLLM's own is x-litellm-tags
INSTANCE_HEADER = "x-vllm-instance"  # a rendered router says with it which instance answered


class Bound(StrEnum):
    """What keeps a route from taking longer prompts."""

    LENGTH = "length"  # max_model_len less what is reserved for the answer
    CAPACITY = "capacity"  # the share of the KV cache of one of the planned requests at once
    SLO = "slo"  # a longer prompt cannot be read within the target for the first token


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRoute:
    """One name that clients can ask for, and which prompts it takes.

    ``name`` is also the served model name and the value of the header. A prompt of more than
    ``max_prompt_tokens`` goes to ``on_overflow``; while no replica of ``instance`` answers,
    ``on_outage`` stands in. ``None`` means that nobody does. ``max_prompt_bytes`` is the same
    threshold for routers that count the bytes of the body.
    """

    name: str
    instance: str
    role: str  # that of the instance: "short", "long-document" or "general"
    max_model_len: int
    reserved_output_tokens: int
    max_prompt_tokens: int
    max_prompt_bytes: int
    bound_by: Bound
    on_overflow: str | None = None
    on_outage: str | None = None
    retrieved: bool = False  # its prompts are made by retrieval: question and passages
    reason: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.max_prompt_tokens <= self.max_model_len - self.reserved_output_tokens:
            raise ValueError(
                f"route {self.name}: max_prompt_tokens {self.max_prompt_tokens:,} is not within "
                f"max_model_len {self.max_model_len:,} less reserved_output_tokens "
                f"{self.reserved_output_tokens:,}"
            )

    def prompt_limit(self, max_tokens: int | None = None) -> int:
        """Longest prompt it takes, beside an answer of ``max_tokens`` where that is stated."""
        if max_tokens is None:
            return self.max_prompt_tokens
        return min(self.max_prompt_tokens, self.max_model_len - max_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRoute:
    """What the plan decided for one request class; it wins over the length of a prompt.

    ``pinned`` sends all of its requests to ``route``, whatever their length. ``retrieve`` asks the
    application for passages where the prompt is too long for ``route``. ``bound_history`` lets it
    shorten the history instead.
    """

    name: str
    needs: Needs
    route: str
    strategy: str
    pinned: bool = False
    retrieve: bool = False
    bound_history: bool = False
    fallback: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """What the application puts into a prompt instead of a document."""

    route: str
    top_k: int
    chunk_tokens: int
    question_tokens: int
    fallback: str | None = None  # route for the whole document, where passages do not answer it

    @property
    def retrieved_tokens(self) -> int:
        """Tokens of all passages."""
        return self.top_k * self.chunk_tokens

    @property
    def prompt_tokens(self) -> int:
        """Question and passages."""
        return self.question_tokens + self.retrieved_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationPolicy:
    """When a history is shortened: old turns become a summary, the last ones stay word for word."""

    summarise_above_tokens: int
    keep_last_turns: int
    summary_tokens: int
    bytes_per_token: float  # for counting where the application has no tokenizer

    def __post_init__(self) -> None:
        for each in fields(self):
            if not getattr(self, each.name) > 0:
                raise ValueError(f"conversation.{each.name} is {getattr(self, each.name)}, not > 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteCount:
    """How routers that see bytes tell tokens: an assumption with a margin, never a count.

    Bodies of ``bytes_per_token x (1 - margin)`` bytes per token or more are never sent to a route
    that is too small for them.
    """

    bytes_per_token: float
    margin: float
    body_limit_bytes: int  # longest body a router has to take


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingPolicy:
    """Every rule by which requests are sent; canonical, and the same for all routers.

    ``routes`` stand in the order in which they are asked: short, retrieval, long. ``by_length``
    names those among which the length of a prompt decides where nothing else does.
    """

    plan: str
    model: str
    routes: tuple[PolicyRoute, ...]
    by_length: tuple[str, ...]
    byte_count: ByteCount
    classes: tuple[ClassRoute, ...] = ()
    retrieval: Retrieval | None = None
    conversation: ConversationPolicy | None = None
    prices: TokenPrices = field(default_factory=TokenPrices)
    costs: tuple[ClassCost, ...] = ()
    header: str = HEADER

    def __post_init__(self) -> None:
        names = [route.name for route in self.routes]
        if len(set(names)) != len(names):
            raise ValueError(f"two routes have one name: {', '.join(names)}")
        if not self.by_length:
            raise ValueError("by_length names no route")
        named: list[tuple[str, str | None]] = [("by_length", name) for name in self.by_length]
        for route in self.routes:
            named += [
                (f"routes.{route.name}.on_overflow", route.on_overflow),
                (f"routes.{route.name}.on_outage", route.on_outage),
            ]
        for one in self.classes:
            named += [
                (f"classes.{one.name}.route", one.route),
                (f"classes.{one.name}.fallback", one.fallback),
            ]
        if self.retrieval:
            named += [
                ("retrieval.route", self.retrieval.route),
                ("retrieval.fallback", self.retrieval.fallback),
            ]
        for where, name in named:
            if name is not None and name not in names:
                raise ValueError(f"{where} is {name!r}, which is no route: {', '.join(names)}")
        limits = [self.route(name).max_prompt_tokens for name in self.by_length]
        if sorted(limits) != limits:
            raise ValueError("the routes in by_length are not in the order of their limits")

    def route(self, name: str) -> PolicyRoute:
        """The route of a name.

        Raises:
            KeyError: there is none.
        """
        found = next((route for route in self.routes if route.name == name), None)
        if found is None:
            raise KeyError(name)
        return found

    def overflow_chain(self, start: PolicyRoute) -> list[PolicyRoute]:
        """The route, then those that take what is too long for it, each once."""
        return self._followed(start, "on_overflow")

    def outage_chain(self, start: PolicyRoute) -> list[PolicyRoute]:
        """The route, then those that stand in while it does not answer, each once."""
        return self._followed(start, "on_outage")

    def _followed(self, start: PolicyRoute, link: str) -> list[PolicyRoute]:
        found = [start]
        while (name := getattr(found[-1], link)) is not None:
            route = self.route(name)
            if route in found:
                break
            found.append(route)
        return found

    def request_class(self, name: str) -> ClassRoute:
        """What is decided for a class.

        Raises:
            KeyError: the plan has no such class.
        """
        found = next((one for one in self.classes if one.name == name), None)
        if found is None:
            raise KeyError(name)
        return found

    def to_dict(self) -> dict[str, Any]:
        """JSON types; :meth:`from_dict` gives the same policy again."""
        made: dict[str, Any] = _plain(asdict(self))
        return made

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> RoutingPolicy:
        """The policy in such data.

        Raises:
            KeyError, TypeError, ValueError: it is not what :meth:`to_dict` gives.
        """
        retrieval, talk = given["retrieval"], given["conversation"]
        return cls(
            plan=given["plan"],
            model=given["model"],
            header=given["header"],
            routes=tuple(
                PolicyRoute(**{**each, "bound_by": Bound(each["bound_by"])})
                for each in given["routes"]
            ),
            by_length=tuple(given["by_length"]),
            byte_count=ByteCount(**given["byte_count"]),
            classes=tuple(
                ClassRoute(**{**each, "needs": Needs(each["needs"])}) for each in given["classes"]
            ),
            retrieval=Retrieval(**retrieval) if retrieval else None,
            conversation=ConversationPolicy(**talk) if talk else None,
            prices=TokenPrices(**given["prices"]),
            costs=tuple(
                ClassCost(**{**each, "ways": tuple(RouteCost(**way) for way in each["ways"])})
                for each in given["costs"]
            ),
        )


def _plain(value: Any) -> Any:
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
