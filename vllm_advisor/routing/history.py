"""A conversation that stays short enough: old turns become a summary, the last ones stay."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from dataclasses import dataclass

from vllm_advisor.errors import InfeasibleError, InputError
from vllm_advisor.routing.messages import (
    Conversation,
    Message,
    estimate_tokens,
    read_conversation,
)
from vllm_advisor.routing.request import token_count
from vllm_advisor.routing.router import Router
from vllm_advisor.types.routing import ConversationPolicy, RoutingPolicy

Summarise = Callable[[list[Message], int], str]
AsyncSummarise = Callable[[list[Message], int], Awaitable[str]]
CountTokens = Callable[[list[Message]], int]


def fit_history(
    messages: Iterable[Message],
    policy: ConversationPolicy | RoutingPolicy | Router,
    summarise: Summarise,
    *,
    count_tokens: CountTokens | None = None,
    max_prompt_tokens: int | None = None,
) -> list[Message]:
    """The messages, short enough.

    At most ``max_prompt_tokens`` tokens stay as they are. Of more, these stay word for word: the
    leading system (or developer) messages and the last ``policy.keep_last_turns`` turns, or fewer
    where these leave no room for a summary of ``policy.summary_tokens``, but always the last
    turn. A turn is a user message and all that follows it; a question that waits for its answer is
    the last one. Everything older becomes one summary, which stands at the end of the leading
    system message under ``messages.SUMMARY_MARKER``.

    Keep what comes back as the history of the conversation: the next call finds the summary in
    it, has it summarised again with the turns that grew old since, and replaces it. What stands
    in a leading system message below the marker is always taken for a summary.

    Args:
        messages: OpenAI chat messages; they are not changed.
        policy: the rules, or the policy or router that holds them.
        summarise: ``summarise(messages, max_tokens)`` gives a text of at most ``max_tokens``
            tokens for messages. The first of them is a system message with the earlier summary,
            if there was one. It is not called if nothing has to be shortened, and again with
            more turns if its text turns out too long.
        count_tokens: tokens of the prompt that messages make, with what the template and tools
            add; called several times. Unless given, :func:`estimate_tokens` with
            ``policy.bytes_per_token``: an assumption that errs to the long side.
        max_prompt_tokens: what a :class:`RoutingDecision` says; unless given,
            ``policy.summarise_above_tokens``.

    Returns:
        A new list. Its messages are those given, but for the one that holds the summary.

    Raises:
        InfeasibleError: instructions, a summary and the last turn are too long.
        InputError: there are no rules, a message has no known shape, or ``summarise`` or
            ``count_tokens`` gives something else than a text or a number of tokens.
    """
    work = _fit(messages, policy, count_tokens, max_prompt_tokens)
    step = next(work)
    while isinstance(step, _Ask):
        step = work.send(summarise(step.messages, step.max_tokens))
    return step


async def afit_history(
    messages: Iterable[Message],
    policy: ConversationPolicy | RoutingPolicy | Router,
    summarise: AsyncSummarise,
    *,
    count_tokens: CountTokens | None = None,
    max_prompt_tokens: int | None = None,
) -> list[Message]:
    """As :func:`fit_history`, with a ``summarise`` that is awaited.

    Raises:
        InfeasibleError, InputError: as :func:`fit_history`.
    """
    work = _fit(messages, policy, count_tokens, max_prompt_tokens)
    step = next(work)
    while isinstance(step, _Ask):
        answer = summarise(step.messages, step.max_tokens)
        if not isinstance(answer, Awaitable):
            raise InputError(
                f"summarise gives {type(answer).__name__}, which cannot be awaited",
                where="summarise",
                fix="give an async function, or use fit_history",
            )
        step = work.send(await answer)
    return step


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ask:
    """What the application has to summarise before it goes on."""

    messages: list[Message]
    max_tokens: int


def _fit(
    messages: Iterable[Message],
    policy: ConversationPolicy | RoutingPolicy | Router,
    count_tokens: CountTokens | None,
    max_prompt_tokens: int | None,
) -> Generator[_Ask | list[Message], object, None]:
    """Ask for summaries, taking each as it is sent, until the last thing given is the result."""
    rules = _rules(policy)
    limit = token_count("max_prompt_tokens", max_prompt_tokens, least=1)
    limit = rules.summarise_above_tokens if limit is None else limit
    given = list(messages)
    talk = read_conversation(given)

    def count(some: list[Message]) -> int:
        if count_tokens is None:
            return estimate_tokens(some, rules.bytes_per_token)
        found = token_count("count_tokens", count_tokens(some))
        if found is None:
            raise InputError("None is no number of tokens", where="count_tokens")
        return found

    length = count(given)
    if length <= limit:
        yield given
        return
    why = ""
    for keep in range(min(rules.keep_last_turns, len(talk.turns)), 0, -1):
        past = talk.past(keep)
        if not past:
            continue
        room = limit - count(talk.fitted(keep, ""))
        if room < (rules.summary_tokens if keep > 1 else 1):
            continue
        allowed = min(rules.summary_tokens, room)
        fitted = talk.fitted(keep, _summary((yield _Ask(messages=past, max_tokens=allowed))))
        too_many = count(fitted) - limit
        if too_many <= 0:
            yield fitted
            return
        why = f"; the summary has {too_many + room:,} tokens where {allowed:,} were allowed"
    raise _too_long(talk, length, limit, count, why)


def _rules(policy: object) -> ConversationPolicy:
    found = policy.policy if isinstance(policy, Router) else policy
    found = found.conversation if isinstance(found, RoutingPolicy) else found
    if isinstance(found, ConversationPolicy):
        return found
    if found is None and policy is not None:
        what = "this policy has no rules for conversations: nothing in the plan may be shortened"
    else:
        what = f"{type(policy).__name__} is no policy"
    fix = "give a ConversationPolicy"
    raise InputError(what, where="policy", fix=fix)


def _summary(found: object) -> str:
    """The text of a summary, which has to be one."""
    if isinstance(found, str) and found.strip():
        return found.strip()
    what = "an empty text" if isinstance(found, str) else type(found).__name__
    fix = "give the text of the answer"
    if isinstance(found, Coroutine):
        found.close()
        fix = "await afit_history instead"
    raise InputError(f"summarise gives {what}, which is no summary", where="summarise", fix=fix)


def _too_long(
    talk: Conversation, length: int, limit: int, count: CountTokens, why: str
) -> InfeasibleError:
    what = f"{length:,} tokens cannot be shortened to {limit:,}: "
    if talk.turns:
        what += f"the last turn alone has {count(list(talk.turns[-1])):,}"
    else:
        what += "all of them are instructions"
    fix = 'send it to the long-document route: Router.decide(needs="whole_document") says which'
    if why:
        fix = f"let summarise keep to max_tokens, give count_tokens, or {fix}"
    return InfeasibleError(f"{what}{why}", where="messages", fix=fix)
