"""Which lines of a log can say anything of a start: most are of requests, and are passed over.

A server goes on printing where its start ends, a hundred lines for each of those. Each known form
has a word between two spaces, or a mark that is found as fast; a line without any of them has
nothing that the forms would find.
"""

from __future__ import annotations

from vllm_advisor.parse.startup_messages import without_escapes

# Of each form of FACT_LINES, REFUSALS and the arguments, one word that stands between spaces.
WORDS = frozenset(
    {
        "AMX_MLA",
        "CPU_MLA",
        "LLM",
        "Mamba",
        "access",
        "architecture:",
        "architectures",
        "argument",
        "attention",
        "available",
        "backend",
        "blocks:",
        "capability:",
        "capturing",
        "concurrency",
        "config:",
        "engine",
        "graph",
        "greater",
        "is:",
        "max_model_len",
        "memory",
        "memory:",
        "model",
        "option",
        "out",
        "prefill",
        "quantization",
        "seq",
        "serve",
        "set",
        "size",
        "size:",
        "smaller",
        "specified",
        "startup",
        "supported",
        "took",
        "unrecognized",
        "usage",
        "version",
        "weights",
        "x",
    }
)
# Errors of Python, warnings, and what stands between other signs than spaces.
MARKS = ("WARNING ", "Error: ", "Exception: ", "Value error, ", "device_", "args: ")
_DOCKER = '{"log":'  # JSON may write a letter as \u0041


def may_say(raw: str) -> bool:
    """Whether a line, as it stands in the file, can say something of a start."""
    if "\x1b" in raw:
        raw = without_escapes(raw)
    if not WORDS.isdisjoint(raw.split()):
        return True
    for mark in MARKS:  # half a million lines notice a generator
        if mark in raw:
            return True
    return raw.startswith(_DOCKER) and "\\u" in raw
