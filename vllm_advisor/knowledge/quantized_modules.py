"""Which parts of the weights a checkpoint quantizes, by the module names its config lists.

vLLM matches the lists against its own module names, with the checkpoint's names mapped to them
(``is_layer_skipped``, ``ModelOptQuantConfigBase.is_layer_excluded``, ``should_ignore_layer``);
here both sides lose the prefixes in which they differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from fnmatch import translate
from typing import Any

from vllm_advisor.errors import NotModelledError
from vllm_advisor.knowledge.quantization import modelopt_bits
from vllm_advisor.types.model import QuantizationFacts, WeightComponent, WeightKind

# The names of one part to what it is stored in; ``None``: as it is, in the model's dtype.
Lookup = Callable[[tuple[str, ...]], QuantizationFacts | None]

_PREFIXES = ("model.language_model.", "language_model.model.", "language_model.", "model.", "")
_HEADS = ("backbone.", *_PREFIXES[:-1])
_LAYER = re.compile(r"layers\.\d+\.")
_NOT_KNOWN = 16
# Recurrent layers' parts by the names that families of checkpoints give them.
_GATE = ("mlp.shared_expert.gate_proj", "mixer.shared_experts.up_proj")
_MODULES = {
    "q_proj": ("self_attn.q_proj", "mixer.q_proj"),
    "kv_proj": ("self_attn.k_proj", "mixer.k_proj"),
    "o_proj": ("self_attn.o_proj", "mixer.o_proj"),
    "in_proj": ("mixer.in_proj", "mamba.in_proj"),
    "in_proj_bc": ("mixer.in_proj", "mamba.in_proj"),
    "out_proj": ("mixer.out_proj", "mamba.out_proj", "linear_attn.out_proj"),
    "in_proj_qkvz": ("linear_attn.in_proj_qkv", "linear_attn.in_proj_qkvz"),
    "in_proj_ba": ("linear_attn.in_proj_b", "linear_attn.in_proj_ba"),
    "mlp": ("mlp.gate_proj", "mixer.up_proj"),
    "experts": ("mlp.experts", "mixer.experts", "block_sparse_moe.experts"),
    "shared_experts": _GATE,
    "kv_a_proj": ("self_attn.kv_a_proj_with_mqa",),
    "kv_b_proj": ("self_attn.kv_b_proj",),
    "q_a_proj": ("self_attn.q_a_proj",),
    "q_b_proj": ("self_attn.q_b_proj",),
}
_LISTS = ("ignore", "modules_to_not_convert", "exclude_modules", "ignored_layers")


def quantized_components(
    components: Iterable[WeightComponent],
    raw: dict[str, Any] | None,
    facts: QuantizationFacts | None,
) -> tuple[WeightComponent, ...]:
    """The parts, cut by layer into what is quantized and what is not.

    Args:
        components: the model's parts; those without module names stay as they are.
        raw: the checkpoint's quantization config, if it has one.
        facts: what was read from it; 16 bits where its format is not known.

    Raises:
        NotModelledError: a format whose bytes per weight are not known.
    """
    parts = tuple(components)
    if raw is None or facts is None or facts.bits == _NOT_KNOWN:
        return parts
    lookup = _lookup(raw, facts)
    out: list[WeightComponent] = []
    for part in parts:
        if part.kind is WeightKind.LM_HEAD:
            head = lookup(("lm_head",)) if raw.get("quantized_layers") else None
            out.append(replace(part, linear=True, quantization=head) if head else part)
        elif not part.linear:
            out.append(part)
        else:
            out += _by_layer(part, lookup)
    return tuple(out)


def _by_layer(part: WeightComponent, lookup: Lookup) -> list[WeightComponent]:
    modules = part.modules or _MODULES.get(part.name, ())
    if not part.layers or not modules:
        return [part]
    groups: dict[QuantizationFacts | None, list[int]] = {}
    for layer in part.layers:
        names = tuple(f"layers.{layer}.{name}" for name in modules)
        groups.setdefault(lookup(names), []).append(layer)
    return [replace(_stored(part, facts), layers=tuple(layers)) for facts, layers in groups.items()]


def _stored(part: WeightComponent, facts: QuantizationFacts | None) -> WeightComponent:
    return replace(part, linear=facts is not None, quantization=facts)


def _lookup(raw: dict[str, Any], facts: QuantizationFacts) -> Lookup:
    names = [str(n) for key in _LISTS for n in (raw.get(key) or ())]
    excluded = _matcher(names, substring=facts.method in ("awq", "gptq", "modelopt"))
    if facts.method == "mxfp4":
        return lambda names: facts if _is_experts(names[0]) else None
    if facts.method == "fp8" and "expert_dtype" in raw:
        return _deepseek_v4(raw, facts)
    if raw.get("quantized_layers"):
        return _mixed(raw["quantized_layers"], facts, excluded)
    targets = _targets(raw)
    return lambda names: (
        facts if any(map(targets, names)) and not any(map(excluded, names)) else None
    )


def _deepseek_v4(raw: dict[str, Any], facts: QuantizationFacts) -> Lookup:
    """FP8 blocks but for the experts (vllm/models/deepseek_v4/quant_config.py)."""
    block = facts.weight_block or (128, 128)
    scale = facts.scale_bits or 8 / (block[0] * block[1])
    linear = replace(facts, weight_block=block, scale_bits=scale)
    experts = linear
    if raw.get("moe_quant_algo"):
        experts = _modelopt(str(raw["moe_quant_algo"]), facts)
    elif raw["expert_dtype"] == "fp4":
        experts = replace(facts, method="mxfp4", bits=4, scale_bits=8 / 32, weight_block=None)
    # Its head and embedding stay in the model's dtype.
    return lambda names: (
        None if names == ("lm_head",) else experts if _is_experts(names[0]) else linear
    )


def _mixed(
    layers: dict[str, dict[str, Any]], facts: QuantizationFacts, excluded: Callable[[str], bool]
) -> Lookup:
    """A format for each module; experts are listed one by one or as a whole."""
    algorithms: dict[str, str] = {}
    for name, recipe in layers.items():
        short, algorithm = _short(name), str(recipe.get("quant_algo"))
        algorithms[short] = algorithm
        block, found, _ = short.partition(".experts.")
        if found:
            algorithms[f"{block}.experts"] = algorithm

    def stored(names: tuple[str, ...]) -> QuantizationFacts | None:
        # Bundled profiles write * for the layer of modules that are listed for every layer.
        spelled = (*names, *(_LAYER.sub("layers.*.", name) for name in names))
        listed = [algorithms[name] for name in spelled if name in algorithms]
        return None if not listed or any(map(excluded, names)) else _modelopt(listed[0], facts)

    return stored


def _modelopt(algorithm: str, facts: QuantizationFacts) -> QuantizationFacts:
    bits = modelopt_bits(algorithm)
    if bits is None:
        raise NotModelledError(
            f"quantization {algorithm} of single layers is not modelled",
            where="config.json: quantization_config.quantized_layers",
            fix="use a checkpoint whose safetensors sizes can be read (folder or Hub id)",
        )
    return replace(facts, bits=bits[0], scale_bits=bits[1], weight_block=None)


def _targets(raw: dict[str, Any]) -> Callable[[str], bool]:
    """compressed-tensors: the modules its groups name, or every linear layer."""
    groups = (raw.get("config_groups") or {}).values()
    names = [str(t) for group in groups for t in (group.get("targets") or ())]
    if not names or "Linear" in names or raw.get("quant_method") != "compressed-tensors":
        return lambda _: True
    matches = _matcher(names, substring=False)
    # Experts are named one by one: re:.*experts.*.gate_proj.
    return lambda name: (
        matches(name)
        or (
            _is_experts(name)
            and any(matches(f"{name}.0.{p}") for p in ("gate_proj", "w1", "up_proj"))
        )
    )


def _matcher(names: list[str], *, substring: bool) -> Callable[[str], bool]:
    """Whether a list names a module: by path, wildcard or regular expression.

    Lists run to thousands of names of single layers, so they are kept by layer.
    """
    plain: dict[str, set[str]] = {}
    wild: dict[str, list[re.Pattern[str]]] = {}
    expressions = [re.compile(n.removeprefix("re:")) for n in names if n.startswith("re:")]
    for name in (_short(n) for n in names if not n.startswith("re:")):
        if "*" in name:
            wild.setdefault(_layer(name), []).append(re.compile(translate(name)))
        else:
            plain.setdefault(_layer(name), set()).add(name)

    def matches(name: str) -> bool:
        for layer in dict.fromkeys((_layer(name), "")):
            listed = plain.get(layer, set())
            # Abbreviated paths match at the boundaries of components.
            if listed and not listed.isdisjoint(_parts(name)):
                return True
            if substring and any(n in name for n in listed):
                return True
            if any(pattern.match(name) for pattern in wild.get(layer, ())):
                return True
        return any(e.match(f"{prefix}{name}") for e in expressions for prefix in _PREFIXES)

    return matches


def _layer(name: str) -> str:
    found = _LAYER.match(name)
    return found[0] if found else ""


def _parts(name: str) -> Iterable[str]:
    """Every run of components: of a.b.c also a, b, c, a.b and b.c."""
    words = name.split(".")
    ends = range(1, len(words) + 1)
    return (".".join(words[start:end]) for end in ends for start in range(end))


def _short(name: str) -> str:
    for head in _HEADS:
        if name.startswith(head):
            return name.removeprefix(head)
    return name


def _is_experts(name: str) -> bool:
    return name.endswith(".experts")
