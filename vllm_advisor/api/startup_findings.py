"""What check finds in the command that the arguments of a start-up log make."""

from __future__ import annotations

import math

from vllm_advisor.api.checking import check
from vllm_advisor.api.startup_facts import StartupFacts
from vllm_advisor.errors import AdvisorError
from vllm_advisor.render.argv import flag_words
from vllm_advisor.types.decision import Location
from vllm_advisor.types.engine import EngineArg
from vllm_advisor.types.finding import Finding
from vllm_advisor.types.startup import StartupLog


def findings_of(
    log: StartupLog, facts: StartupFacts, *, gpu_count: int, file: str
) -> list[Finding]:
    """What check finds in the command that the log's arguments make; nothing without them."""
    if facts.engine is None or facts.model is None or facts.model.startswith("-"):
        return []
    place = Location(file=file, line=log.arguments_line or log.first_line)
    words = ["vllm", "serve", facts.model]
    for dest, value in facts.arguments.items():
        try:
            words += flag_words(EngineArg(dest=dest, value=value, origin=place), facts.engine)
        except AdvisorError:
            continue  # what no command line can say is no part of one
    ranks = math.prod(
        int(facts.arguments.get(name) or 1)
        for name in ("tensor_parallel_size", "pipeline_parallel_size")
        if str(facts.arguments.get(name) or 1).isdecimal()
    )
    try:
        report = check(
            words,
            gpu=facts.accelerator.id if facts.accelerator else None,
            gpu_count=max(gpu_count, ranks),
            vllm_version=facts.engine.version,
        )
    except AdvisorError:
        return []
    return [f for f in report.findings if f.severity.value in ("error", "warning")]
