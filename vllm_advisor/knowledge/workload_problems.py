"""What is wrong with a workload file, in plain words, each at its line and column.

All problems of a file are found in one reading and reported together, in the file's order; only
what depends on several keys of one mapping waits until each of these keys is right in itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from vllm_advisor.errors import AdvisorError, InputError
from vllm_advisor.knowledge.workload_file import WorkloadKeys
from vllm_advisor.knowledge.workload_values import INCONSISTENT, UNREADABLE, Problem
from vllm_advisor.knowledge.yaml_marks import KeyPath, MarkedYaml

_EXPECTED = {
    "bool_type": "true or false",
    "float_type": "a number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_type": "a mapping of keys to values",
    "string_type": "text",
}
_LIMITS = {
    "greater_than": ("gt", "above"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "below"),
    "less_than_equal": ("le", "at most"),
}
# Keys of other tools and of vLLM's own flags -> the key here.
_OTHER_NAMES = {
    "concurrency": "concurrent_requests",
    "features": "uses",
    "gpu_count": "count",
    "gpus": "count",
    "input_tokens": "prompt_tokens",
    "kv_cache_dtype": "kv_cache_dtypes",
    "node_count": "nodes",
    "num_gpus": "count",
    "qps": "requests_per_second",
    "quantization": "weight_quantization",
    "request_rate": "requests_per_second",
    "rps": "requests_per_second",
    "tpot_ms": "itl_ms",
}
# Words that vLLM users look for and that mean something else here.
_OTHER_WORDS = {
    "awq": "name the AWQ checkpoint as `model`: vLLM cannot make one while it loads",
    "bitsandbytes": "vLLM 0.33 needs a plugin of its own for it",
    "gguf": "vLLM 0.33 needs a plugin of its own for it",
    "gptq": "name the GPTQ checkpoint as `model`: vLLM cannot make one while it loads",
}

KeysT = TypeVar("KeysT", bound=BaseModel)


class WorkloadError(InputError):
    """A workload file with problems: this is the first, ``others`` are the rest in order."""

    def __init__(self, problems: list[AdvisorError]) -> None:
        first, *others = problems
        super().__init__(first.what, where=first.where, fix=first.fix)
        self.others = tuple(others)


def read_workload_keys(marked: MarkedYaml) -> WorkloadKeys:
    """Hold a workload file against its models.

    Raises:
        WorkloadError: all that is wrong with the file.
    """
    return read_keys(marked, WorkloadKeys, beyond=tuple(_between_sections(marked)))


def read_keys(marked: MarkedYaml, model: type[KeysT], *, beyond: tuple[Problem, ...] = ()) -> KeysT:
    """Hold a file against the model of its top level; ``beyond`` are problems already known.

    Raises:
        WorkloadError: all that is wrong with the file.
    """
    keys, problems = None, list(beyond)
    try:
        keys = model.model_validate(marked.data)
    except ValidationError as error:
        for details in error.errors(include_url=False):
            problems += _problems(details, marked, model)
    if keys is None or problems:
        problems.sort(key=lambda problem: (marked.position(problem.path), len(problem.path)))
        raise WorkloadError([_as_error(problem, marked) for problem in problems])
    return keys


def _as_error(problem: Problem, marked: MarkedYaml) -> AdvisorError:
    label = _label(problem.path)
    what = f"{label}: {problem.what}" if label else problem.what
    return InputError(what, where=marked.where(problem.path), fix=problem.fix)


def _label(path: KeyPath) -> str:
    """``classes[0].prompt_tokens.p95``."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def _between_sections(marked: MarkedYaml) -> Iterator[Problem]:
    """What is wrong between sections, found whether or not each section is right in itself."""
    data = marked.data
    classes = data.get("classes")
    seen: dict[str, int] = {}
    for index, item in enumerate(classes if isinstance(classes, list) else []):
        name = item.get("name") if isinstance(item, dict) else None
        if not isinstance(name, str):
            continue
        path: KeyPath = ("classes", index, "name")
        if name in seen:
            what = f"'{name[:60]}' is already the class on line {seen[name]}"
            yield Problem(path=path, what=what, fix="give every class its own name")
        seen.setdefault(name, marked.position(path)[0])
    listed = data.get("uses")
    uses = listed if isinstance(listed, list) else []
    if data.get("lora") is not None and "lora" not in uses:
        fix = "add lora to `uses`, or remove this section"
        yield Problem(path=("lora",), what="given, but `uses` does not list lora", fix=fix)
    if "lora" in uses and data.get("lora") is None:
        fix = "add lora: {max_loras: ..., max_lora_rank: ...}"
        yield Problem(path=("uses",), what="lists lora, but there is no `lora` section", fix=fix)
    if data.get("images_per_prompt") is not None and "vision" not in uses:
        fix = "add vision to `uses`, or remove this key"
        what = "given, but `uses` does not list vision"
        yield Problem(path=("images_per_prompt",), what=what, fix=fix)


def _problems(details: ErrorDetails, marked: MarkedYaml, model: type[BaseModel]) -> list[Problem]:
    """The problems behind one of pydantic's errors."""
    path: KeyPath = ()
    for step in details["loc"]:
        # A tag such as "<spread>" names the form of a value; it is no key of the file.
        if not str(step).startswith("<") or (*path, step) in marked.marks:
            path = (*path, step)
    kind, context, value = details["type"], details.get("ctx", {}), details["input"]
    if kind == INCONSISTENT:
        return [
            Problem(path=(*path, *inner.path), what=inner.what, fix=inner.fix)
            for inner in context["problems"]
        ]
    fix = _description(model, path)
    if kind == "extra_forbidden":
        what, fix = _unknown_key(path, model)
    elif kind == "missing":
        return [Problem(path=path, what="is missing", fix=f"add `{path[-1]}:`. {fix}")]
    elif value is None:
        what = "is empty"
    elif kind in ("literal_error", "enum"):
        what, fix = _unknown_word(value, str(context["expected"]))
    elif kind in _EXPECTED:
        what = f"{_show(value)} is {_kind(value)}, not {_EXPECTED[kind]}"
        if kind == "string_type" and not isinstance(value, (list, dict)):
            fix = f"put it in quotes. {fix}"
        elif kind in ("int_type", "float_type") and isinstance(value, str):
            fix = f"write a plain number, such as 1000: YAML reads 1e3 as text. {fix}"
    elif kind in _LIMITS:
        limit, word = _LIMITS[kind]
        what = f"{_show(value)} has to be {word} {_show(context[limit])}"
    elif kind == UNREADABLE:
        what = details["msg"]
    elif kind in ("too_short", "string_too_short"):
        what = "is empty"
    elif kind in ("too_long", "string_too_long"):
        what = f"is longer than {context['max_length']}"
    elif kind == "finite_number":
        what = f"{_show(value)} is not finite"
    elif kind == "string_pattern_mismatch":
        what = f"{_show(value)} is not allowed"
    else:
        what = f"{_show(value)}: {details['msg'][:1].lower()}{details['msg'][1:]}"
    return [Problem(path=path, what=what, fix=fix)]


def _show(value: Any) -> str:
    """A value as the file has it, cut to fit a line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:g}"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _kind(value: Any) -> str:
    kinds: Mapping[type, str] = {
        bool: "a yes or no",
        int: "a number",
        float: "a fraction",
        str: "text",
        list: "a list",
        dict: "a mapping",
    }
    return kinds.get(type(value), "a date")


def _unknown_word(value: Any, expected: str) -> tuple[str, str]:
    """An unknown word, with the nearest known one; ``expected`` is pydantic's list of them."""
    words = re.findall(r"'([^']*)'", expected)
    fix = f"use one of {', '.join(words) or expected}"
    word = str(value)
    near = get_close_matches(word, words, n=1) or [w for w in words if w.startswith(f"{word}_")]
    if near:
        fix = f"did you mean {near[0]}? Otherwise {fix}"
    return f"{_show(value)} is unknown", _OTHER_WORDS.get(word, fix)


def _unknown_key(path: KeyPath, model: type[BaseModel]) -> tuple[str, str]:
    """An unknown key, with the key that was meant or the place where it belongs."""
    key, place = str(path[-1]), _place(path[:-1])
    known = sorted(_descriptions(model, place))
    if key in known:
        return "cannot stand beside the other keys here", "keep one of the ways to write it"
    elsewhere = [other for other in _places(model) if key in _descriptions(model, other)]
    if elsewhere:
        section = ".".join(elsewhere[0]).replace(".*", "[]") or "the top level"
        return "stands in the wrong place", f"move it to {section}"
    near = [_OTHER_NAMES[key]] if _OTHER_NAMES.get(key) in known else []
    near = near or get_close_matches(key, known, n=1)
    fix = f"did you mean `{near[0]}`?" if near else f"known keys: {', '.join(known)}"
    return "is an unknown key", fix


Place = tuple[str, ...]


def _place(path: KeyPath) -> Place:
    """A key path without the positions in lists: ``("classes", "*", "slo")``."""
    return tuple("*" if isinstance(step, int) else step for step in path)


def _description(model: type[BaseModel], path: KeyPath) -> str:
    """What the key says it is, or the mapping or list that holds it."""
    if not path:
        return ""
    found = _descriptions(model, _place(path[:-1])).get(str(path[-1]))
    return _description(model, path[:-1]) if found is None else found


def _descriptions(model: type[BaseModel], place: Place) -> dict[str, str]:
    """The keys allowed at a place, each with its description."""
    return _places(model).get(place, {})


@cache
def _places(root: type[BaseModel]) -> dict[Place, dict[str, str]]:
    """Every place of the file that holds keys."""
    places: dict[Place, dict[str, str]] = {}

    def visit(model: type[BaseModel], place: Place) -> None:
        keys = places.setdefault(place, {})
        for name, field in model.model_fields.items():
            keys[name] = field.description or ""
            for inner, deeper in _models(field.annotation, (*place, name)):
                visit(inner, deeper)

    visit(root, ())
    return places


def _models(annotation: Any, place: Place) -> Iterator[tuple[type[BaseModel], Place]]:
    """The models inside an annotation and where their keys stand."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, place
    inside = (*place, "*") if getattr(annotation, "__origin__", None) is list else place
    for argument in get_args(annotation):
        yield from _models(argument, inside)
