"""Another tool's predictions on the same measurements, beside ours on the rows it answers.

Ours come from constants that had not seen the rows. Theirs come from tables of kernels, for one or
two versions of vLLM, and some of the rows are published with that tool.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import zip_longest

from latency_errors import Pair, kind_of
from performance_rows import question_of

from vllm_advisor.api.second_opinion import ask, installed_version
from vllm_advisor.types.second_opinion import SecondOpinion


def stratified(pairs: Sequence[Pair], count: int) -> list[Pair]:
    """So many rows: one of each group, then a second of each, chosen by the hash of their ids."""
    groups: dict[str, list[Pair]] = defaultdict(list)
    for pair in sorted(pairs, key=lambda p: sha256(p[0].entry["id"].encode()).hexdigest()):
        groups[pair[0].group].append(pair)
    turns = zip_longest(*groups.values())
    return [pair for turn in turns for pair in turn if pair is not None][:count]


def answers(tool: str, pairs: Iterable[Pair]) -> tuple[list[tuple[Pair, SecondOpinion]], Counter]:
    """Rows it answers, and why it has no answer for the others."""
    installed_version(tool)
    found: list[tuple[Pair, SecondOpinion]] = []
    reasons: Counter[str] = Counter()
    for pair in pairs:
        said = ask(tool, question_of(pair[0]))
        if said.answered:
            found.append((pair, said))
        else:
            reasons[said.reason[:90]] += 1
    return found, reasons


def misses_of(found: Iterable[tuple[Pair, SecondOpinion]]) -> dict[str, list[float]]:
    """log(predicted / measured) of its answers, by quantity and regime as ours are told apart."""
    values: dict[str, list[float]] = defaultdict(list)
    for (row, constants), said in found:
        seen, replicas = row.observed, row.entry["replicas"]
        pairs = {
            "tpot": (said.tpot_ms, seen.tpot and seen.tpot * 1000),
            "throughput": (
                said.output_tokens_per_second and said.output_tokens_per_second * replicas,
                seen.tokens_per_second,
            ),
            "ttft": (said.ttft_ms, seen.ttft and seen.ttft * 1000),
        }
        for name, (predicted, measured) in pairs.items():
            if predicted and measured:
                values[kind_of(row, name, constants)].append(math.log(predicted / measured))
    return dict(values)
