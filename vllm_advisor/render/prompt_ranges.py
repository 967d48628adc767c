"""Which instance takes a prompt, where its length in tokens is all that a router knows of it."""

from __future__ import annotations

from dataclasses import dataclass

from vllm_advisor.render.routing import policy_of
from vllm_advisor.types.plan import Plan

# Nobody's estimate of a prompt gets there. A prompt that is too long even for the longest instance
# is vLLM's to refuse: it counts, and says what it counted.
NO_END = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRange:
    """The prompts of one instance, in tokens, both ends included.

    ``reserved`` is the longest answer of its own classes; ``longer`` names the classes of other
    instances whose answers may be longer, with that length.
    """

    instance: str
    start: int
    end: int
    max_model_len: int
    reserved: int
    longer: tuple[tuple[str, int], ...] = ()

    @property
    def label(self) -> str:
        """``START-END``."""
        return f"{self.start}-{self.end}"

    @property
    def open(self) -> bool:
        """It takes whatever is longer than the other ranges."""
        return self.end == NO_END


def prompt_ranges(plan: Plan) -> dict[str, PromptRange]:
    """Ranges by instance, without gaps and without overlap; none where one range would do for all.

    They end at the policy's thresholds. An instance that could take shorter prompts as well does
    not get them: it may answer them worse (YaRN) or later (the prefill of long documents).

    Raises:
        OutputError: the plan has no routing policy.
    """
    policy = policy_of(plan)
    routes = [policy.route(name) for name in policy.by_length]
    if len({route.instance for route in routes}) < len(plan.deployment.instances) or not routes[1:]:
        return {}
    answers = {each["name"]: int(each["output_tokens"][-1]) for each in plan.inputs["classes"]}
    classes = {each.name: each.classes for each in plan.deployment.instances}
    found: dict[str, PromptRange] = {}
    start = 0
    for route in routes:
        end = NO_END if route is routes[-1] else route.max_prompt_tokens
        found[route.instance] = PromptRange(
            instance=route.instance,
            start=start,
            end=end,
            max_model_len=route.max_model_len,
            reserved=route.reserved_output_tokens,
            longer=tuple(
                (name, tokens)
                for name, tokens in answers.items()
                if name not in classes[route.instance] and tokens > route.reserved_output_tokens
            ),
        )
        start = end + 1
    return found
