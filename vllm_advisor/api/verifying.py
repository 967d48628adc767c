"""verify: a running deployment tried through its OpenAI API."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from vllm_advisor.errors import InputError, OutputError
from vllm_advisor.units import parse_tokens
from vllm_advisor.verify import address
from vllm_advisor.verify.client import OpenAIClient
from vllm_advisor.verify.needle import NeedleTest, find_needles
from vllm_advisor.verify.needle_result import NeedleResult
from vllm_advisor.verify.probes import Kind
from vllm_advisor.verify.question import NeedleTexts
from vllm_advisor.verify.routes import RouteCheck, RoutesResult

__all__ = [
    "NeedleResult",
    "RoutesResult",
    "needle_plot",
    "verify_needle",
    "verify_routes",
    "write_plot",
]
DEPTHS = (10, 50, 90)
MAX_TOKENS = 64
TIMEOUT_SECONDS = 600.0
MAX_PROBE_TOKENS = 20_000
_MAX_DOCUMENT_BYTES = 100_000_000


def _silent(message: str) -> None:
    del message


def verify_needle(
    base_url: str,
    model: str,
    document: str | Path,
    *,
    depths: Sequence[float | str] = DEPTHS,
    lengths: Sequence[int | str] = (),
    needle: str | None = None,
    question: str | None = None,
    expect: str | None = None,
    max_tokens: int = MAX_TOKENS,
    min_hit_rate: float = 1.0,
    api_key_env: str | None = None,
    headers: Iterable[str] = (),
    timeout: float = TIMEOUT_SECONDS,
    progress: Callable[[str], None] = _silent,
) -> NeedleResult:
    """Put a sentence into a document at chosen depths and lengths, and ask a server for it.

    Args:
        base_url: of the server; ``/v1`` is added where it has no path.
        model: its name there.
        document: text file in UTF-8.
        depths: percent of the document before the sentence.
        lengths: tokens of the whole prompt; ``32K`` is 32,768. Quarters of what the server takes
            if there are none.
        needle: the sentence, with ``{code}`` where each cell has a code of its own.
        question: what asks for it.
        expect: what a right answer holds; the code unless given.
        max_tokens: longest answer.
        min_hit_rate: share of cells that have to be found.
        api_key_env: environment variable with the key; VLLM_API_KEY, then OPENAI_API_KEY.
        headers: ``NAME=VALUE`` words, sent with every request.
        timeout: seconds per request.
        progress: told each step.

    Raises:
        InputError: document, model or an option cannot be used.
        UnknownFactError: the server cannot be reached, fails, or refuses the key.
    """
    if not 0 <= min_hit_rate <= 1:
        raise InputError(f"{min_hit_rate} is no share", where="--min-hit-rate", fix="from 0 to 1")
    if max_tokens < 1:
        raise InputError(f"{max_tokens} is no answer", where="--max-tokens", fix="at least 1")
    client = _client(base_url, model, api_key_env, headers, timeout)
    test = NeedleTest(
        model=model,
        document=_document(Path(document)),
        file=str(document),
        texts=NeedleTexts.of(needle=needle, question=question, expect=expect),
        depths=_depths(depths),
        lengths=_lengths(lengths),
        max_tokens=max_tokens,
        min_hit_rate=min_hit_rate,
    )
    return find_needles(client, test, progress)


def verify_routes(
    plan: str | Path,
    base_url: str,
    *,
    kinds: Collection[str] = (),
    overlong: bool = False,
    max_probe_tokens: int = MAX_PROBE_TOKENS,
    instances: Iterable[str] = (),
    api_key_env: str | None = None,
    headers: Iterable[str] = (),
    timeout: float = TIMEOUT_SECONDS,
    progress: Callable[[str], None] = _silent,
) -> RoutesResult:
    """Send probes to a router and hold where they land against the plan's policy.

    Args:
        plan: a routing.yaml, a plan.yaml, or a folder that has one.
        base_url: of the router; ``/v1`` is added where it has no path.
        kinds: ``length``, ``header``, ``model``; all of them unless given.
        overlong: also send a prompt that no route takes.
        max_probe_tokens: longest prompt by length, unless the limit before it is longer.
        instances: ``NAME=URL`` words: where the counters of an instance can be read.
        api_key_env: environment variable with the key; VLLM_API_KEY, then OPENAI_API_KEY.
        headers: ``NAME=VALUE`` words, sent with every request.
        timeout: seconds per request.
        progress: told each step.

    Raises:
        InputError: the plan or an option cannot be used.
        UnknownFactError: router or instances cannot be reached, or the key is refused.
    """
    from vllm_advisor.api.policies import find_policy  # noqa: PLC0415 - needs yaml

    policy = find_policy(plan).policy
    check = RouteCheck(
        client=_client(base_url, policy.model, api_key_env, headers, timeout),
        policy=policy,
        instances=_instances(instances, {route.instance for route in policy.routes}),
    )
    chosen = {Kind(kind) for kind in kinds} or {Kind.LENGTH, Kind.HEADER, Kind.MODEL}
    if overlong:
        chosen.add(Kind.OVERLONG)
    return check.run(chosen, cap=max_probe_tokens, progress=progress)


def needle_plot(result: NeedleResult) -> str:
    """The hits as an SVG: depth over length."""
    from vllm_advisor.render.needle_plot import needle_svg  # noqa: PLC0415 - needs jinja2

    return needle_svg(result.to_dict())


def write_plot(text: str, path: Path) -> None:
    """Write the file, or nothing.

    Raises:
        OutputError: it cannot be written.
    """
    staged = path.with_name(f".{path.name}.part")
    try:
        staged.write_text(text, encoding="utf-8", newline="\n")
        staged.replace(path)
    except OSError as error:
        with suppress(OSError):
            staged.unlink(missing_ok=True)
        raise OutputError(
            f"cannot write: {error.strerror or error}",
            where=str(path),
            fix="name a file in a folder that exists and can be written",
        ) from None


def _client(
    base_url: str, model: str, api_key_env: str | None, headers: Iterable[str], timeout: float
) -> OpenAIClient:
    if not model.strip() or not model.isprintable():
        raise InputError(f"{model!r} is no name of a model", where="--model", fix="--model NAME")
    if not 0 < timeout < float("inf"):
        raise InputError(f"{timeout} is no time", where="--timeout", fix="give seconds above 0")
    return OpenAIClient(
        base=address.base_url(base_url),
        timeout=timeout,
        key=address.api_key(api_key_env),
        headers=address.extra_headers(headers),
    )


def _document(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            raw = stream.read(_MAX_DOCUMENT_BYTES + 1)
        if len(raw) > _MAX_DOCUMENT_BYTES:
            raise InputError(
                f"the document is larger than {_MAX_DOCUMENT_BYTES:,} bytes",
                where=str(path),
                fix="give a part of it: a short one is repeated",
            )
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"the document is not UTF-8 (byte {error.start:,})",
            where=str(path),
            fix="convert it: iconv -f LATIN1 -t UTF-8",
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot read the document: {getattr(error, 'strerror', None) or error}",
            where=str(path),
            fix="name a text file",
        ) from None
    if not text.strip():
        raise InputError("the document is empty", where=str(path), fix="name a file with text")
    return text.replace("\r\n", "\n").strip("\n")


def _depths(given: Iterable[float | str]) -> tuple[float, ...]:
    found = []
    for word in given:
        try:
            depth = float(word)
        except ValueError:
            depth = -1.0
        if not 0 <= depth <= 100:
            raise InputError(
                f"{word!r} is no depth", where="--depths", fix="percent from 0 to 100: 10,50,90"
            )
        found.append(int(depth) if depth.is_integer() else depth)
    if not found:
        raise InputError("there is no depth", where="--depths", fix="--depths 10,50,90")
    return tuple(sorted(set(found)))


def _lengths(given: Iterable[int | str]) -> tuple[int, ...]:
    found = []
    for word in given:
        try:
            length = parse_tokens(word)
        except ValueError as error:
            raise InputError(str(error), where="--lengths", fix="--lengths 4000,32K") from None
        if length <= 0:
            raise InputError("a length is at least 1 token", where="--lengths")
        found.append(length)
    return tuple(sorted(set(found)))


def _instances(words: Iterable[str], names: Collection[str]) -> dict[str, tuple[str, ...]]:
    """``NAME=URL`` words by name; a name that stands twice has two replicas."""
    found: dict[str, tuple[str, ...]] = {}
    for word in words:
        name, equals, given = word.partition("=")
        if not equals or name not in names:
            raise InputError(
                f"{name!r} is no instance of the plan",
                where="--instance",
                fix=f"--instance NAME=URL, NAME one of: {', '.join(sorted(names))}",
            )
        url = (
            address.server_url(given, option="--instance")
            .removesuffix("/metrics")
            .removesuffix("/v1")
        )
        found[name] = (*found.get(name, ()), url)
    return found
