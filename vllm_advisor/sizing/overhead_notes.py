"""What a result rests on where it uses the fitted constants of memory beside weights and cache."""

from __future__ import annotations

from collections.abc import Collection

from vllm_advisor.sizing.overhead_shape import OverheadShape
from vllm_advisor.types.engine import Overheads
from vllm_advisor.types.source import Assumption, Confidence
from vllm_advisor.units import GIB

_FITTED = {
    "activations": "activations",
    "cuda_graphs": "CUDA graphs",
    "non_torch": "non-torch memory",
}


def overhead_assumptions(
    shape: OverheadShape, overheads: Overheads, measured: Collection[str] = ()
) -> tuple[Assumption, ...]:
    """What a result rests on where it uses these constants.

    Args:
        shape: the model's.
        overheads: the constants.
        measured: names of figures that a log of the same server says; they rest on no fit.
    """
    fit = [what for name, what in _FITTED.items() if name not in measured]
    if not fit:
        return ()
    logs = f"{overheads.sample or 'no'} start-up logs of vLLM {overheads.versions}"
    miss = f"{overheads.error_bytes / GIB:.2f} GiB"
    what = f"{', '.join(fit[:-1])} and {fit[-1]}" if fit[1:] else fit[0]
    verb = "is" if fit == [_FITTED["non_torch"]] else "are"
    fitted = Assumption(
        id="overheads-fitted",
        text=f"{what} {verb} fitted to {logs} (nine of ten within {miss}); vLLM measures them at "
        "start-up",
    )
    if overheads.thin:
        follow = "follows" if verb == "is" else "follow"
        fitted = Assumption(
            id="overheads-fitted",
            text=f"too few logs ({logs}) are public: {what} {follow} vLLM's code and the fit to "
            f"older versions, {miss} are allowed for; vLLM measures them at start-up",
            lowers_to=Confidence.LOW,
        )
    if not shape.sparse_attention or "activations" in measured:
        return (fitted,)
    scratch = Assumption(
        id="sparse-attention-scratch",
        text="scratch of sparse attention is fitted to four logs that differ by half",
        lowers_to=Confidence.LOW,
    )
    return (fitted, scratch)
