"""What a server was expected to hold: by its plan, or by what the check computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vllm_advisor.errors import InputError
from vllm_advisor.plugin import variables
from vllm_advisor.plugin.guard import Running, say
from vllm_advisor.plugin.words import served_names

_MOST = 4_000_000  # bytes of a plan.yaml
_LIMIT = 3.0  # seconds to read one


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Figures of one engine. ``by`` is ``planned`` or ``predicted``.

    ``tokens`` and ``max_concurrency`` are the two numbers of vLLM's log line, at ``max_model_len``
    tokens. ``longest_prompt`` is the longest that the plan's classes send, in tokens. ``gpu`` is
    the GPU profile that a prediction is for.
    """

    by: str
    tokens: int | None = None
    num_gpu_blocks: int | None = None
    max_concurrency: float | None = None
    max_model_len: int | None = None
    longest_prompt: int | None = None
    instance: str = ""
    gpu: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def expected_of(found: Mapping[str, Any] | None) -> Expected | None:
    """The inverse of ``to_dict``; None where it is none."""
    if not found or not set(found) <= set(Expected.__dataclass_fields__):
        return None
    return Expected(**found)


def expected_by(config: Any) -> Expected | None:
    """What the plan says of the server with this VllmConfig, else what the check computed."""
    path = variables.value(variables.PLAN)
    predicted = expected_of(variables.marked_prediction())
    if not path:
        return predicted
    instance = variables.value(variables.INSTANCE)
    names = _names(config)
    try:
        reading = Running(lambda: read_planned(path, instance=instance, names=names))
        return reading.result(_LIMIT)
    except Exception as error:
        says = getattr(error.__cause__, "what", None) or str(error)
        say("warning", f"no comparison with the plan {path}: {says}")
        return predicted


def _names(config: Any) -> tuple[str, ...]:
    """What the server calls its model: only the first is in the config, the command has all."""
    served = getattr(getattr(config, "model_config", None), "served_model_name", None) or ()
    first = [served] if isinstance(served, str) else list(served)
    return tuple(dict.fromkeys((*map(str, first), *served_names())))


def read_planned(path: str, *, instance: str, names: tuple[str, ...]) -> Expected:
    """The figures of one instance of a plan.

    Args:
        path: a plan.yaml.
        instance: its name; empty to find it by ``names``.
        names: what the server calls its model.

    Raises:
        InputError: the file cannot be read, is none that ``plan`` writes, or the instance is not
            in it.
    """
    import yaml

    try:
        if Path(path).stat().st_size > _MOST:
            raise InputError("too large for a plan.yaml", where=path)
        text = Path(path).read_text(encoding="utf-8")
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast in C
        data = yaml.load(text, loader)  # noqa: S506 - both are safe
        rows = {str(row["name"]): row for row in data["instances"]}
        found = _chosen(rows, instance, names, path)
        cache = found["figures"]["kv_cache"]
        return Expected(
            by="planned",
            tokens=int(cache["tokens"]),
            num_gpu_blocks=int(cache["num_gpu_blocks"]),
            max_concurrency=float(cache["max_concurrency"]),
            max_model_len=int(found["figures"]["max_model_len"]["configured"]),
            longest_prompt=_longest_prompt(data, found),
            instance=str(found["name"]),
        )
    except (OSError, UnicodeDecodeError) as error:
        says = getattr(error, "strerror", None) or "not UTF-8"
        raise InputError(f"cannot read: {says}", where=path) from None
    except yaml.YAMLError as error:
        raise InputError(f"no YAML: {str(error).splitlines()[0]}", where=path) from None
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"no plan.yaml: {type(error).__name__} {error}", where=path) from None


def _chosen(
    rows: dict[str, Mapping[str, Any]], instance: str, names: tuple[str, ...], path: str
) -> Mapping[str, Any]:
    if instance:
        if instance not in rows:
            raise InputError(f"no instance {instance}: it has {', '.join(rows)}", where=path)
        return rows[instance]
    if len(rows) == 1:
        return next(iter(rows.values()))
    # Names that all instances share tell nothing; the instance's own is one of its model's names.
    by_name = [row for name, row in rows.items() if name in names]
    if len(by_name) != 1:
        served = [r for r in rows.values() if set(_served(r)) & set(names)]
        by_name = by_name or served
    if len(by_name) != 1:
        what = (
            f"which of {', '.join(rows)} this is cannot be told by {', '.join(names) or 'a name'}"
        )
        raise InputError(f"{what}: set VLLM_ADVISOR_INSTANCE", where=path)
    return by_name[0]


def _served(row: Mapping[str, Any]) -> tuple[str, ...]:
    names = row["engine_args"].get("served_model_name") or ()
    return (names,) if isinstance(names, str) else tuple(map(str, names))


def _longest_prompt(data: Mapping[str, Any], found: Mapping[str, Any]) -> int | None:
    """The longest prompt of the classes that the instance serves; [p50, p95, max] in the plan."""
    classes = (data.get("inputs") or {}).get("classes") or ()
    lengths = [int(c["prompt_tokens"][-1]) for c in classes if c["name"] in found["classes"]]
    return max(lengths, default=None)
