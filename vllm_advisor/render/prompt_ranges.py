"""Which instance takes a prompt, where its length in tokens is all that a router knows of it."""

from __future__ import annotations

from dataclasses import dataclass

from vllm_advisor.errors import OutputError
from vllm_advisor.types.plan import Instance, Plan

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

    A range ends where the longest answer of the instance's classes still fits beside the prompt:
    ``max_model_len - max(output_tokens)``. An instance that could take shorter prompts as well does
    not get them: it may answer them worse (YaRN) or later (the prefill of long documents).

    Raises:
        OutputError: an instance has no ``--max-model-len``.
    """
    instances = plan.deployment.instances
    answers = {each["name"]: int(each["output_tokens"][-1]) for each in plan.inputs["classes"]}
    reserved = {i.name: max((answers[name] for name in i.classes), default=0) for i in instances}
    limits = {i.name: _max_model_len(i) - reserved[i.name] for i in instances}
    steps = sorted(set(limits.values()))
    if len(steps) == 1:
        return {}
    starts = dict(zip(steps, (0, *(step + 1 for step in steps[:-1])), strict=True))
    return {
        i.name: PromptRange(
            instance=i.name,
            start=starts[limits[i.name]],
            end=limits[i.name] if limits[i.name] != steps[-1] else NO_END,
            max_model_len=_max_model_len(i),
            reserved=reserved[i.name],
            longer=tuple(
                (name, tokens)
                for name, tokens in answers.items()
                if name not in i.classes and tokens > reserved[i.name]
            ),
        )
        for i in instances
    }


def _max_model_len(instance: Instance) -> int:
    given = instance.engine_args.get("max_model_len")
    if given is None:
        raise OutputError(
            "no --max-model-len is planned: nothing says which prompts it can take",
            where=f"instance {instance.name}",
            fix="use a target that does not choose by length",
        )
    return int(given)
