"""The keys of values that the templates of a Helm chart read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from vllm_advisor.errors import InputError
from vllm_advisor.resources import profiles

STACK = "vllm-stack-0.1.12"
# A tree of keys: ``[]`` for the items of a list, ``*`` for keys of one's own, ``**`` for whatever
# the chart passes on as it is. A key without anything below it holds a value.
ChartKeys: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart's keys; ``source`` is the repository and the commit they were read of."""

    name: str
    version: str
    source: str
    keys: ChartKeys

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@cache
def load_chart_keys(name: str) -> Chart:
    """The keys of a chart that is bundled.

    Args:
        name: ``vllm-stack-0.1.12``.

    Raises:
        InputError: the file cannot be read.
    """
    path = profiles("charts") / f"{name}.json"
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        return Chart(
            name=read["chart"], version=read["version"], source=read["source"], keys=read["keys"]
        )
    except (OSError, ValueError, KeyError) as error:
        what = f"the chart's keys cannot be read: {error}"
        fix = "install vllm-advisor again if you have not changed it"
        raise InputError(what, where=str(path), fix=fix) from error
