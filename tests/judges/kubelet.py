"""What the kubelet makes of a container's command and args.

The rule is that of k8s.io/kubernetes third_party/forked/golang/expansion: ``$$`` is one dollar,
``$(NAME)`` the container's variable, and left as it is where there is none of that name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_VARIABLE = re.compile(r"\$\$|\$\(([^)]*)\)")


def expanded_words(words: list[str], variables: Mapping[str, str] | None = None) -> list[str]:
    """The words with which a container is started."""
    known = variables or {}

    def value(found: re.Match[str]) -> str:
        return "$" if found[1] is None else known.get(found[1], found[0])

    return [_VARIABLE.sub(value, word) for word in words]
