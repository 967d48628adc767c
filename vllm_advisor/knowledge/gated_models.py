"""Which models of the Hub are known to be gated: they are downloaded with a token only."""

from __future__ import annotations

from functools import cache

from vllm_advisor.knowledge.profile_file import read_yaml
from vllm_advisor.resources import profiles


def is_gated(model: str) -> bool:
    """Whether a model is known to be gated; of the others nothing is known.

    Args:
        model: its id on the Hub.
    """
    return model.lower().startswith(_prefixes())


@cache
def _prefixes() -> tuple[str, ...]:
    entries = read_yaml(profiles("gated") / "models.yaml")
    return tuple(str(entry["prefix"]).lower() for entry in entries)
