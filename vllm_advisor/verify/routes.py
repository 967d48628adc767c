"""Sends probes to a router and holds where they land against the policy."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from vllm_advisor.types.routing import RoutingPolicy
from vllm_advisor.verify.client import OpenAIClient, RefusedError
from vllm_advisor.verify.counting import bytes_per_token
from vllm_advisor.verify.landing import By, Landing, grown, instance_of
from vllm_advisor.verify.metrics import answered
from vllm_advisor.verify.probes import Kind, Probe, filler, probes
from vllm_advisor.verify.transport import printable
from vllm_advisor.verify.verdicts import ProbeResult, Verdict, answered_verdict, refused_verdict

SCHEMA_VERSION = "1"
_SAMPLE_TOKENS = 400
_LAG_SECONDS = 3.0  # vLLM counts a request a moment after its answer
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutesResult:
    """All probes of a run."""

    plan: str
    model: str
    base_url: str
    probes: tuple[ProbeResult, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing landed wrong or failed."""
        return not any(p.verdict in (Verdict.WRONG, Verdict.FAILED) for p in self.probes)

    @property
    def unknown(self) -> int:
        """Probes of which nobody says where they landed."""
        return sum(probe.verdict is Verdict.UNKNOWN for probe in self.probes)

    def to_dict(self) -> dict[str, Any]:
        """JSON types: what ``--format json`` prints."""
        return {
            "schema_version": SCHEMA_VERSION,
            "plan": self.plan,
            "model": self.model,
            "base_url": self.base_url,
            "passed": self.passed and not self.unknown,
            "probes": [probe.to_dict() for probe in self.probes],
            "notes": self._notes(),
        }

    def _notes(self) -> list[str]:
        notes = []
        if not any(probe.verdict is Verdict.OK for probe in self.probes):
            notes.append("no probe shows that the router follows the plan")
        return notes


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteCheck:
    """One run against a router; ``instances`` are the addresses whose counters may be read."""

    client: OpenAIClient
    policy: RoutingPolicy
    instances: Mapping[str, Collection[str]]

    def run(
        self, kinds: Collection[Kind], *, cap: int, progress: Callable[[str], None]
    ) -> RoutesResult:
        """Send a sample that tells bytes per token, then the probes one after the other.

        Args:
            kinds: which.
            cap: longest prompt by length, in tokens.
            progress: told each probe before it is sent.

        Raises:
            UnknownFactError: router or instances cannot be reached, or the key is refused.
        """
        planned = probes(self.policy, kinds, cap=cap)
        ratio = self._sample()
        results = []
        for number, probe in enumerate(planned, start=1):
            what = printable(f"{probe.kind.value} {probe.route or ''}")
            progress(f"probe {number} of {len(planned)}: {what}, {probe.tokens:,} tokens")
            results.append(self._sent(probe, filler(f"Probe {number}.", probe.tokens, ratio)))
        return RoutesResult(
            plan=self.policy.plan,
            model=self.policy.model,
            base_url=self.client.base,
            probes=tuple(results),
        )

    def _sample(self) -> float:
        """Bytes per token of the probes' text; those of the policy if the router does not count."""
        reckoned = self.policy.byte_count.bytes_per_token
        prompt = filler("Sample.", _SAMPLE_TOKENS, reckoned)
        before = self._counters()
        try:
            answer = self.client.chat(self.policy.model, prompt, max_tokens=1)
        except RefusedError as refusal:
            if refusal.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                raise
            return reckoned
        self._landed(answer.headers, before)  # so that no later probe is taken for this one
        tokens = answer.prompt_tokens
        return bytes_per_token(len(prompt), tokens) if tokens else reckoned

    def _sent(self, probe: Probe, prompt: str) -> ProbeResult:
        before = self._counters()
        try:
            answer = self.client.chat(probe.model, prompt, max_tokens=1, headers=probe.headers)
        except RefusedError as refusal:
            return refused_verdict(probe, refusal)
        landing, doubt = self._landed(answer.headers, before)
        return answered_verdict(self.policy, probe, answer.prompt_tokens, landing, doubt)

    def _counters(self) -> dict[str, float]:
        return {
            name: sum(answered(url, timeout=self.client.timeout) for url in urls)
            for name, urls in self.instances.items()
        }

    def _landed(
        self, headers: Mapping[str, str], before: Mapping[str, float]
    ) -> tuple[Landing | None, str]:
        """Where a probe landed, else why that is not known."""
        names = {route.instance for route in self.policy.routes}
        landing = instance_of(headers, names)
        if landing or not self.instances:
            return landing, "no header of the answer names an instance of the plan"
        deadline = time.monotonic() + _LAG_SECONDS
        while not (found := grown(before, self._counters())) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        if len(found) == 1:
            return Landing(instance=found[0], by=By.METRICS), ""
        if found:
            return None, f"{' and '.join(found)} answered meanwhile: there is other traffic"
        return None, f"the counters of {', '.join(before)} did not grow"
