"""What Prometheus remembers of vLLM servers, asked through its HTTP API.

See https://prometheus.io/docs/prometheus/latest/querying/api/.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from vllm_advisor.errors import InputError, UnknownFactError
from vllm_advisor.parse.metrics.samples import Sample
from vllm_advisor.verify.transport import printable, request

_MATCHERS = re.compile(
    r'\s*[A-Za-z_]\w*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\\n]|\\.)*"\s*'
    r'(?:,\s*[A-Za-z_]\w*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\\n]|\\.)*"\s*)*',
    re.ASCII,
)
_FIX = "give the address of Prometheus (http://HOST:9090), or of vLLM itself (http://HOST:8000)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prometheus:
    """Asks one Prometheus; ``timeout`` in seconds, ``headers`` go with every request.

    ``match`` are label matchers that choose servers (``namespace="llm"``); empty for all.
    """

    url: str
    timeout: float
    match: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Check the matchers: they become part of queries.

        Raises:
            InputError: they are none.
        """
        if self.match and not _MATCHERS.fullmatch(self.match):
            raise InputError(
                f"{self.match[:60]!r} is no list of label matchers",
                where="--match",
                fix="""--match 'namespace="llm",pod=~"chat-.*"'""",
            )

    def answers(self) -> bool:
        """Whether Prometheus is behind the address.

        Raises:
            UnknownFactError: nothing answers.
        """
        return self._asked("vector(1)") is not None

    def query(self, expression: str) -> tuple[Sample, ...]:
        """The values of an expression now; samples without a name are those of sums.

        Raises:
            UnknownFactError: it is not answered.
        """
        found = self._asked(expression)
        if found is None:
            raise UnknownFactError(
                f"Prometheus does not answer {expression[:120]}", where=self.url, fix=_FIX
            )
        return found

    def selector(self, name: str, *matchers: str) -> str:
        """A metric of the chosen servers."""
        return f"{name}{{{','.join(filter(None, (self.match, *matchers)))}}}"

    def _asked(self, expression: str) -> tuple[Sample, ...] | None:
        sent = {"user-agent": "vllm-advisor", "accept": "application/json", **self.headers}
        url = f"{self.url}/api/v1/query?{urlencode({'query': expression})}"
        reply = request(url, timeout=self.timeout, headers=sent)
        try:
            data: Any = json.loads(reply.body)
        except (ValueError, RecursionError):
            return None
        if not isinstance(data, dict):
            return None
        if data.get("status") == "error":
            raise UnknownFactError(
                f"Prometheus: {printable(str(data.get('error')))[:300]}",
                where=f"{self.url}: {expression[:120]}",
                fix="see its log; a server that stores long windows may need a larger --timeout",
            )
        try:
            rows = data["data"]["result"] if reply.status == HTTPStatus.OK else None
            return None if rows is None else tuple(map(_sample, rows))
        except (KeyError, TypeError, ValueError, IndexError):
            return None


def _sample(row: Any) -> Sample:
    labels = {str(name): str(value) for name, value in row["metric"].items()}
    return Sample(name=labels.pop("__name__", ""), labels=labels, value=float(row["value"][1]))
