"""Fit profiles/memory/overheads.yaml to the start-up logs in tests/data/startups.jsonl.

``python tools/fit_overheads.py`` writes the file, ``--check`` says whether it is current,
``--report`` prints every log's miss. Plain Python with least squares of its own (normal
equations, two to four unknowns): nothing to install, the same result everywhere.

What is fitted on what, in GiB, with the tensors of ``vllm_advisor/sizing/overhead.py``:

1. Sampler: logged activations less the experts' scratch = a x logits + b x hidden + c, over text
   models, per runner (the sort of the whole vocabulary went away in 0.17).
2. Encoders: median of what multimodal models show above 1.
3. Widest layer: what dense models show above gate, up and product where that exceeds 1, in hidden
   states: mean. Sparse attention: the same per batched token, median.
4. Outside of torch: medians by link between the ranks. A link without a log gets the costlier
   neighbour's: stages that of one GPU, PCIe that of the next family, unified memory the largest.
5. Graph estimate: base + layers x sizes / 51 + latent attention, over the estimates 0.19 to 0.28
   print (one estimator).
6. Sparse attention before 0.26: from the one refused start that prints what was left.
7. 0.29 and later: another model runner, with one dense log. What its code fixes is taken from the
   code, the graph base from that log, the rest is carried over; ``sample`` says so.

Held out: of the models sorted by name every second one is left out of 1 to 3, then the others.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from overhead_logs import (
    Family,
    Log,
    activations,
    before_start,
    cache_misses,
    halves,
    least_squares,
    percentile,
    read_logs,
    spent,
)
from overheads_yaml import render

from vllm_advisor.sizing.overhead import RankLink

PROFILE = Path(__file__).parents[1] / "profiles" / "memory" / "overheads.yaml"
WIDE = 4  # hidden states beside gate, up and product from which on the widest layer is looked at
PENALTY_STATE = 1 + 1 / 32  # int32 counts of the vocabulary and one bit each
CONSTANT_MODELS = 10
CARRIED = ("multimodal", "forward_hidden_factor")  # to 0.10-0.16, where no log shows them
THIN_ERROR = 0.75  # GiB; what a carried-over family may miss by


def fit_activations(family: Family, logs: Iterable[Log], fallback: dict[str, float]) -> None:
    """Steps 1 to 3 into ``family.constants``; what has no log here comes from ``fallback``."""
    c = family.constants
    c.update({key: c.get(key, value) for key, value in fallback.items()})
    logs = list(logs)
    mine = [g for g in logs if "activations" in g.gib and not g.graphs_in_activations]
    derived = []  # from the whole, where graphs are not part of it
    if not family.graphs_set_aside:
        derived = [
            replace(g, gib={**g.gib, "activations": g.spent - c[f"non_torch_{g.link.value}"]})
            for g in logs
            if g.spent is not None and g.trust in ("A", "B") and "activations" not in g.gib
        ]

    def above(log: Log) -> float:
        held = log.workspace if family.moe_workspace else 0.0
        return log.gib["activations"] - held - c["constant"]

    text = [g for g in mine if not g.shape.multimodal and not g.shape.sparse_attention]
    if len({g.model for g in text}) >= 3:
        held = [g.workspace if family.moe_workspace else 0.0 for g in text]
        values = [g.gib["activations"] - w for g, w in zip(text, held, strict=True)]
        # A constant needs models enough to tell it from the logits of one vocabulary.
        free = [1.0] if len({g.model for g in text}) >= CONSTANT_MODELS else []
        found = least_squares([[g.logits, g.hidden, *free] for g in text], values)
        c.update(logits_factor=found[0], hidden_factor=found[1], constant=sum(found[2:]))
    sampler = {
        g.id: c["logits_factor"] * g.logits + c["hidden_factor"] * g.hidden for g in mine + derived
    }
    seeing = [g for g in mine if g.shape.multimodal and g.mlp + WIDE * g.hidden < sampler[g.id]]
    if seeing:
        c["multimodal"] = statistics.median(above(g) - sampler[g.id] for g in seeing)
    wide = [
        (above(g) - (c["multimodal"] if g.shape.multimodal else 0.0) - g.mlp) / g.hidden
        for g in mine + derived
        if g.mlp + WIDE * g.hidden > sampler[g.id] and not g.shape.num_experts
    ]
    if wide:
        c["forward_hidden_factor"] = statistics.mean(wide)
    sparse = [
        (above(g) - g.mlp - c["forward_hidden_factor"] * g.hidden) * 1024 / g.tokens
        for g in mine
        if g.shape.sparse_attention
    ]
    if sparse:
        c["sparse_mib_per_token"] = statistics.median(sparse)
        family.comments.append(
            f"sparse attention: {min(sparse):.2f} to {max(sparse):.2f} MiB per token in "
            f"{len(sparse)}"
        )


def fit_non_torch(family: Family, logs: Iterable[Log], others: dict[RankLink, float]) -> None:
    """Step 4: medians by link; for links without a log ``others``, then the neighbours'."""
    logged: dict[RankLink, list[float]] = {link: [] for link in RankLink}
    for log in logs:
        if "non_torch" in log.gib:
            # From 0.27 on what logs count as consumed includes the experts' scratch.
            held = log.workspace if log.version >= (0, 27) else 0.0
            logged[log.link].append(log.gib["non_torch"] - held)
    found = others | {link: statistics.median(v) for link, v in logged.items() if v}
    family.comments += [
        f"non-torch {link.value}: {min(values):.2f} to {max(values):.2f} in {len(values)}"
        for link, values in logged.items()
        if values
    ]
    found.setdefault(RankLink.PIPELINE, found[RankLink.NONE])
    found.setdefault(RankLink.UNIFIED, max(found.values()))
    family.constants.update({f"non_torch_{link.value}": found[link] for link in RankLink})


def fit_graphs(logs: Iterable[Log]) -> tuple[dict[str, float], list[float]]:
    """Step 5: the estimator's constants and its misses."""
    mine = [
        g
        for g in logs
        if "cuda_graphs_estimate" in g.gib
        and not g.shape.sparse_attention
        and (0, 19) <= g.version < (0, 29)
    ]
    features = [
        [1.0, g.shape.num_hidden_layers * g.sizes / 51, float(g.shape.latent_attention)]
        for g in mine
    ]
    values = [g.gib["cuda_graphs_estimate"] for g in mine]
    found = least_squares(features, values)
    misses = [
        sum(c * f for c, f in zip(found, row, strict=True)) - value
        for row, value in zip(features, values, strict=True)
    ]
    shares = [
        g.gib["cuda_graphs"] / g.gib["cuda_graphs_estimate"] for g in mine if "cuda_graphs" in g.gib
    ]
    constants = {
        "graph_base": found[0],
        "graph_layer": found[1],
        "graph_latent": found[2],
        "graph_actual_share": statistics.median(shares),
    }
    return constants, misses


def fit() -> list[Family]:
    """All families, newest first."""
    logs = read_logs()
    graphs, graph_misses = fit_graphs(logs)
    none = dict.fromkeys(
        ("constant", *CARRIED, "sparse_mib_per_token", "sampler_state_factor"), 0.0
    )
    old = Family(">=0.10,<0.17", "vllm-0.10-to-0.16", (0, 10), (0, 17), False, False)  # noqa: FBT003
    v1 = Family(">=0.17,<0.21", "vllm-0.17-to-0.20", (0, 17), (0, 21), True, False)  # noqa: FBT003
    aside = Family(">=0.26,<0.29", "vllm-0.26-to-0.28", (0, 21), (0, 29), True, True)  # noqa: FBT003
    v2 = Family(">=0.29,<0.33", "vllm-0.29-to-0.32", (0, 29), (0, 33), True, True)  # noqa: FBT003
    newest = Family(">=0.33", "vllm-0.33-and-later", (0, 33), (9,), True, True)  # noqa: FBT003
    # Without a log of its own, 0.17-0.20 takes the one of PCIe nearest in time.
    probe = replace(aside, constants={}, comments=[])
    fit_non_torch(probe, [g for g in logs if aside.holds(g)], {})
    pcie = {RankLink.PCIE: probe.constants["non_torch_pcie"]}
    for family, base in ((v1, none), (old, none), (aside, None)):
        mine = [g for g in logs if family.holds(g)]
        start = v1.constants if base is None else base
        if family is old:
            start = {**none, **{key: v1.constants[key] for key in CARRIED}}
        _fit_family(family, mine, dict(start), graphs, pcie if family is v1 else {})
    _carry_over(v2, aside, logs, logits=0.5)
    _carry_over(newest, aside, logs, logits=v1.constants["logits_factor"])
    aside.terms["graph_estimate"] = v1.terms["graph_estimate"] = graph_misses
    return [newest, v2, aside, _early(aside, logs), v1, old, _oldest(old, logs)]


def _early(aside: Family, logs: list[Log]) -> Family:
    """Step 6: as ``aside``, with the scratch sparse attention took then."""
    early = replace(
        aside,
        versions=">=0.21,<0.26",
        name="vllm-0.21-to-0.25",
        last=(0, 26),
        constants=dict(aside.constants, sparse_mib_per_token=0.0),
        terms={},
        comments=[],
    )
    refused = next(g for g in logs if early.holds(g) and g.weights_elsewhere)
    # Without the sampler, which the wider layer hides.
    plain = spent(refused, replace(early, constants={**early.constants, "logits_factor": 0.0}))
    left = (refused.spent or 0.0) - plain
    early.constants["sparse_mib_per_token"] = left * 1024 / refused.tokens
    misses = [m for g, m in cache_misses(early, [g for g in logs if early.holds(g)])]
    early.terms["kv_cache"] = misses
    early.sample, early.error = len(misses), THIN_ERROR
    return early


def _oldest(old: Family, logs: list[Log]) -> Family:
    """As ``old``: the V1 engine before 0.10, of which no complete log with its model is known."""
    oldest = replace(
        old,
        versions=">=0.8,<0.10",
        name="vllm-0.8-to-0.9",
        first=(0, 8),
        last=(0, 10),
        terms={},
        comments=[],
    )
    misses = [m for _, m in cache_misses(oldest, [g for g in logs if oldest.holds(g)])]
    oldest.terms["kv_cache"] = misses
    oldest.sample, oldest.error = len(misses), THIN_ERROR
    return oldest


def _fit_family(
    family: Family,
    mine: list[Log],
    fallback: dict[str, float],
    graphs: dict[str, float],
    others: dict[RankLink, float],
) -> None:
    def fill(target: Family, logs: list[Log]) -> None:
        target.constants.update(graphs)
        fit_non_torch(target, mine, others)
        fit_activations(target, logs, fallback)

    fill(family, mine)
    misses = cache_misses(family, mine)
    plain = [(g, m) for g, m in misses if not g.shape.sparse_attention]
    family.terms["activations"] = [
        activations(g, family) - g.gib["activations"]
        for g in mine
        if "activations" in g.gib and not g.graphs_in_activations
    ]
    family.terms["non_torch"] = [
        family.constants[f"non_torch_{g.link.value}"] - g.gib["non_torch"]
        for g in mine
        if "non_torch" in g.gib and g.version < (0, 27)
    ]
    family.terms["kv_cache"] = [m for _, m in plain]
    family.terms["kv_cache_trust_a"] = [m for g, m in plain if g.trust == "A"]
    family.terms["kv_cache_sparse_attention"] = [m for g, m in misses if g.shape.sparse_attention]
    family.sample = len(plain)
    family.error = round(max(0.1, percentile(family.terms["kv_cache"], 0.9)), 2)
    one, other = halves(mine)
    family.terms["kv_cache_held_out"] = held = []
    for train, test in ((one, other), (other, one)):
        half = replace(family, constants={}, terms={}, comments=[])
        fill(half, train)
        held += [m for g, m in cache_misses(half, test) if not g.shape.sparse_attention]


def _carry_over(family: Family, source: Family, logs: list[Log], *, logits: float) -> None:
    """Step 7: constants of the model runner that 0.29 made the default."""
    c = family.constants
    c.update(source.constants)
    # What latent attention added to the older estimate is not known of the newer one.
    c.update(logits_factor=logits, sampler_state_factor=PENALTY_STATE, graph_latent=0.0)
    anchor = next(g for g in logs if g.version == (0, 31, 0) and "activations" in g.gib)
    single = anchor.gib["non_torch"] - PENALTY_STATE * anchor.logits
    shift = single - source.constants["non_torch_none"]
    for link in RankLink:
        c[f"non_torch_{link.value}"] += shift
    forward = anchor.mlp + c["forward_hidden_factor"] * anchor.hidden
    plain = max(0.5 * anchor.logits + c["hidden_factor"] * anchor.hidden, forward) + c["constant"]
    layers = c["graph_layer"] * anchor.shape.num_hidden_layers * anchor.sizes / 51
    c["graph_base"] = anchor.gib["activations"] - plain - layers
    c["graph_actual_share"] = anchor.gib["cuda_graphs"] / (c["graph_base"] + layers)
    misses = cache_misses(family, [g for g in logs if family.holds(g)])
    family.terms["kv_cache"] = [m for _, m in misses]
    family.sample = len(misses)
    family.error = THIN_ERROR


def report(families: list[Family]) -> None:
    """Every compared log, worst first within its family."""
    logs = read_logs()
    for family in families:
        print(f"{family.name}: { ({k: round(v, 3) for k, v in family.constants.items()}) }")
        misses = cache_misses(family, [g for g in logs if family.holds(g)])
        for log, miss in sorted(misses, key=lambda pair: -abs(pair[1])):
            print(f"  {log.id[:52]:52} {log.trust:2} {log.gib['kv_cache']:7.2f} {miss:+.3f}")


def main() -> int | str:
    """Write, check or explain."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail if the file is not current")
    parser.add_argument("--report", action="store_true", help="print every log's miss")
    chosen = parser.parse_args()
    families = fit()
    text = render(families, before_start())
    if chosen.report:
        report(families)
        return 0
    if chosen.check:
        current = PROFILE.read_text(encoding="utf-8") == text
        return 0 if current else f"{PROFILE} differs from the fit"
    PROFILE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
