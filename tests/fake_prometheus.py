"""A Prometheus that knows one moment of some counted engines, and the queries that are asked of it.

``tests/unit/verify/test_real_prometheus.py`` asks a real one the same.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from fake_metrics import Answer, Counted

from vllm_advisor.parse.metrics.samples import Sample, read_samples

_SELECTOR = r"(?P<name>[\w:]+)\{(?P<match>[^{}]*)\}"
_PRESENT = (
    rf"(?P<function>avg|max|count)_over_time\(\(sum\({_SELECTOR}\) \+ sum\(.*\)\)\[\d+s:\d+s\]\)"
)
_MATCHER = re.compile(r'(\w+)(=~|=)"((?:[^"\\]|\\.)*)"')


@dataclass(kw_only=True)
class Remembered:
    """``engines`` by their instance; ``covered`` seconds are remembered."""

    engines: dict[str, Counted]
    covered: float = 600.0
    gone: tuple[str, ...] = ()  # instances that are there no longer
    peak: float = 0.5
    asked: list[str] = field(default_factory=list)

    def answer(self, path: str) -> Answer:
        """What the HTTP API says."""
        parts = urlsplit(path)
        if parts.path != "/api/v1/query":
            return 404, "404 page not found"
        query = parse_qs(parts.query)["query"][0]
        self.asked.append(query)
        rows = self._rows(query)
        if rows is None:
            return 400, {"status": "error", "errorType": "bad_data", "error": f"cannot: {query}"}
        result = [{"metric": labels, "value": [0, str(value)]} for labels, value in rows]
        return 200, {"status": "success", "data": {"resultType": "vector", "result": result}}

    def _rows(self, query: str) -> list[tuple[dict[str, str], float]] | None:
        for pattern, evaluate in _QUERIES:
            match = re.fullmatch(pattern, query)
            if match:
                return evaluate(self, match)
        return None

    def chosen(self, name: str, matchers: str) -> list[Sample]:
        """The samples of a selector."""
        wanted = _MATCHER.findall(matchers)
        found = []
        for instance, engine in self.engines.items():
            for sample in read_samples(engine.text()):
                labels = {**sample.labels, "instance": instance, "job": "vllm"}
                fits = all(
                    re.fullmatch(text, labels.get(key, ""))
                    if op == "=~"
                    else labels.get(key) == text
                    for key, op, text in wanted
                )
                if sample.name == name and fits:
                    found.append(Sample(name=name, labels=labels, value=sample.value))
        return found


_Rows = list[tuple[dict[str, str], float]]


def _summed(samples: Sequence[Sample], by: str | None) -> _Rows:
    found: dict[tuple[tuple[str, str], ...], float] = defaultdict(float)
    for sample in samples:
        keys = tuple((key, sample.labels.get(key, "")) for key in (by.split(",") if by else ()))
        found[keys] += sample.value
    return [(dict(keys), value) for keys, value in found.items()]


def _grown(of: Remembered, match: re.Match[str]) -> _Rows:
    return _summed(of.chosen(match["name"], match["match"]), match["by"])


def _over(of: Remembered, match: re.Match[str]) -> _Rows:
    found = of.chosen(match["name"], match["match"])
    if match["function"] == "count":
        return [(s.labels, 40.0) for s in found]
    return [(s.labels, s.value) for s in found]


def _now(of: Remembered, match: re.Match[str]) -> _Rows:
    found = of.chosen(match["name"], match["match"])
    return [(s.labels, s.value) for s in found if s.labels["instance"] not in of.gone]


def _present(of: Remembered, match: re.Match[str]) -> _Rows:
    if match["function"] == "count":
        return [({}, 40.0)]
    names = ("vllm:num_requests_running", "vllm:num_requests_waiting")
    return [({}, sum(s.value for name in names for s in of.chosen(name, match["match"])))]


def _models(of: Remembered, match: re.Match[str]) -> _Rows:
    return [
        ({"model_name": model}, 1.0)
        for model in sorted(
            {s.labels["model_name"] for s in of.chosen(match["name"], match["match"])}
        )
    ]


_QUERIES: tuple[tuple[str, Callable[[Remembered, re.Match[str]], Any]], ...] = (
    (r"vector\(1\)", lambda of, _: [({}, of.peak)]),
    (rf"count by \(model_name\) \(last_over_time\({_SELECTOR}\[\d+s\]\)\)", _models),
    (rf"sum(?: by \((?P<by>[\w,]+)\))? \(increase\({_SELECTOR}\[\d+s\]\)\)", _grown),
    (
        rf"(?P<function>avg|max|count|last)_over_time\({_SELECTOR}\[\d+s\]\)",
        _over,
    ),
    (_PRESENT, _present),
    (_SELECTOR, _now),
    (
        r"max_over_time\(sum\(rate\(.*\[\d+s\]\)\)\[\d+s:\d+s\]\)",
        lambda of, _: [({}, of.peak)],
    ),
    (r"time\(\) - min\(min_over_time\(timestamp\(.*", lambda of, _: [({}, of.covered)]),
)
