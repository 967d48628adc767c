"""The verdict on a probe: who should have answered, and who did. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from http import HTTPStatus
from typing import Any

from vllm_advisor.types.routing import RoutingPolicy
from vllm_advisor.verify.client import RefusedError
from vllm_advisor.verify.landing import By, Landing
from vllm_advisor.verify.probes import REFUSED, Kind, Probe, expected_instance, in_margin

# Refusals that say nothing about the length of a prompt.
_OTHER_REFUSALS = (
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_MANY_REQUESTS,
)


class Verdict(StrEnum):
    """What became of a probe."""

    OK = "ok"
    WRONG = "wrong"  # another instance answered
    INCONCLUSIVE = "inconclusive"  # the tokens do not tell who should have answered
    NOT_OFFERED = "not offered"  # the router does not know the name
    FAILED = "failed"  # the router or an instance refused it
    UNKNOWN = "unknown"  # it was answered, and nobody says by whom


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """What became of one probe. ``expected`` and ``landed`` are instances, or ``refused``."""

    probe: Probe
    verdict: Verdict
    prompt_tokens: int | None = None
    expected: str | None = None
    landed: str | None = None
    by: By | None = None
    detail: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON types."""
        return {
            "kind": self.probe.kind.value,
            "asked": self.probe.asked(),
            "prompt_tokens": self.prompt_tokens,
            "expected": self.expected,
            "landed": self.landed,
            "by": self.by.value if self.by else None,
            "verdict": self.verdict.value,
            "detail": self.detail,
        }


def answered_verdict(
    policy: RoutingPolicy, probe: Probe, tokens: int | None, landing: Landing | None, doubt: str
) -> ProbeResult:
    """The verdict on a probe that was answered.

    Args:
        policy: the plan's.
        probe: what was sent.
        tokens: of its prompt, as they are counted there; ``None`` if that is not said.
        landing: which instance answered, if it is known.
        doubt: why it is not known.
    """
    result = ProbeResult(probe=probe, verdict=Verdict.OK, prompt_tokens=tokens)
    if landing:
        result = replace(result, landed=landing.instance, by=landing.by)
    if tokens is None:
        return replace(
            result,
            verdict=Verdict.INCONCLUSIVE,
            detail="the answer has no usage: how long the prompt was is not known",
        )
    expected = expected_instance(policy, probe, tokens)
    result = replace(result, expected=expected)
    if probe.kind is Kind.OVERLONG and tokens <= max(r.max_model_len for r in policy.routes):
        return replace(
            result,
            verdict=Verdict.INCONCLUSIVE,
            detail=f"{tokens:,} tokens, as they are counted there, are not too long",
        )
    if probe.kind is Kind.OVERLONG:
        return replace(
            result, verdict=Verdict.WRONG, detail="answered, though no route takes so many tokens"
        )
    near = in_margin(policy, tokens) if probe.kind is Kind.LENGTH else None
    if near:
        return replace(
            result,
            verdict=Verdict.INCONCLUSIVE,
            detail=f"so near the limit of {near}, a router that counts bytes may send it on",
        )
    if landing is None:
        return replace(result, verdict=Verdict.UNKNOWN, detail=doubt)
    if landing.instance != expected:
        return replace(
            result,
            verdict=Verdict.WRONG,
            detail=f"{landing.instance} answered; the plan sends it to {expected}",
        )
    return result


def refused_verdict(probe: Probe, refusal: RefusedError) -> ProbeResult:
    """The verdict on a probe that was not answered."""
    words = f": {refusal.words}" if refusal.words else ""
    result = ProbeResult(
        probe=probe, verdict=Verdict.FAILED, detail=f"HTTP {refusal.status}{words}"
    )
    if probe.kind is Kind.OVERLONG:
        result = replace(result, expected=REFUSED)
        if 400 <= refusal.status < 500 and refusal.status not in _OTHER_REFUSALS:
            return replace(result, landed=REFUSED, verdict=Verdict.OK)
    if probe.kind is Kind.MODEL and refusal.unknown_model:
        return replace(result, verdict=Verdict.NOT_OFFERED)
    return result
