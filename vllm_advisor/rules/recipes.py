"""What a model's recipe asks for: no rule, but what excuses a setting."""

from __future__ import annotations

from vllm_advisor.types.model import ModelFacts


def recipe_sets(model: ModelFacts, dest: str, value: object) -> bool:
    """Whether the recipe gives a flag this value, everywhere or for some family of GPUs."""
    serving = model.serving
    given = (serving.base_args, *serving.hardware_args.values())
    return any(args.get(dest) == value for args in given)
