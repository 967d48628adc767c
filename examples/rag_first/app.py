"""Questions about documents: passages to the short model first, the whole text only if needed.

    python app.py --routing deploy/routing.yaml --document contract.txt "Who may terminate?"
    python app.py --routing deploy/routing.yaml --chat

The server is OPENAI_BASE_URL, the key OPENAI_API_KEY. Answers go to stdout, notes to stderr.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from counting import TokenCounter, note
from retrieval import read_document, retrieve

from vllm_advisor.errors import EXIT_CANNOT_KNOW, AdvisorError, InfeasibleError
from vllm_advisor.routing import (
    Action,
    Message,
    Router,
    RoutingDecision,
    fit_history,
)

NOT_FOUND = "NOT_IN_PASSAGES"
INSTRUCTIONS = "Answer briefly. Where a text is given, answer from that text alone."
PASSAGES = (
    "Passages of a longer text:\n\n{text}\n\n"
    f"If they do not hold the answer, reply {NOT_FOUND} and nothing else.\n\nQuestion: {{question}}"
)
WHOLE = "{text}\n\nQuestion: {question}"
SUMMARISE = (
    "Summarise this conversation in at most {words} words. Keep names, figures, decisions and "
    "open questions.\n\n{text}"
)


class UnavailableError(AdvisorError):
    """Nobody answers; try again later."""

    exit_code = EXIT_CANNOT_KNOW


@dataclass
class App:
    """A conversation; ``document`` is what all of its questions are about, empty if nothing.

    ``client`` is an ``openai.OpenAI``, and ``outages`` are the errors by which it tells that a
    server does not answer.
    """

    router: Router
    client: Any
    document: str = ""
    outages: tuple[type[Exception], ...] = (ConnectionError,)
    talk: list[Message] = field(default_factory=lambda: [_said("system", INSTRUCTIONS)])
    down: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.tokens = TokenCounter(self.router.policy, self.client)

    def ask(self, question: str) -> str:
        """The answer; it and the question become part of the conversation.

        Raises:
            InfeasibleError: the question is too long for every model.
            UnavailableError: nobody answers.
        """
        self.down.clear()
        text = self._lookup(question) if self.document else self._chat(question)
        self.talk += [_said("user", question), _said("assistant", text)]
        return text

    def _lookup(self, question: str) -> str:
        """From passages if they hold the answer, else from the whole document."""
        whole = self._whole(question)
        tokens = self.tokens.count(whole)
        decision = self._decide(tokens, needs="lookup")
        if decision.action is Action.RETRIEVE:
            passages = self._passages(question, decision)
            length = self.tokens.count(passages) if passages else 0
            decision = self._decide(tokens, needs="lookup", retrieved_tokens=length)
            if passages and decision.retrieved:  # else they are too long
                answer = self._send(decision, passages)
                if NOT_FOUND not in answer:
                    return answer
                note("the passages do not hold the answer")
                decision = self._decide(tokens, needs="lookup", retrieved_tokens=0)
                whole = self._whole(question)  # the conversation may be shorter now
        return self._send(decision, whole)

    def _whole(self, question: str) -> list[Message]:
        """The document where it is the same for all questions, so that vLLM reads it once."""
        system, first, *rest = [*self.talk, _said("user", question)]
        text = WHOLE.format(text=self.document, question=first["content"])
        return [system, _said("user", text), *rest]

    def _passages(self, question: str, decision: RoutingDecision) -> list[Message]:
        """The prompt with passages instead of the document; empty if there are none for it."""
        limits = self.router.policy.retrieval
        size = limits.chunk_tokens if limits else 0
        room = decision.retrieve_tokens or 0
        found = retrieve(question, self.document, size, room, self.tokens.of_text)
        text = PASSAGES.format(text="\n\n---\n\n".join(found), question=question)
        try:
            return self._shortened([*self.talk, _said("user", text)], decision) if found else []
        except InfeasibleError as error:
            note(error.what)
            return []

    def _chat(self, question: str) -> str:
        """From the conversation, whose past is summarised once it is too long."""
        messages = [*self.talk, _said("user", question)]
        tokens = self.tokens.count(messages)
        new = self.tokens.count([self.talk[0], messages[-1]])
        decision = self._decide(tokens, needs="recent_only", history_tokens=tokens - new)
        if decision.action is Action.BOUND_HISTORY:
            try:
                messages = self._shortened(messages, decision)
            except InfeasibleError as error:
                note(error.what)
                decision = self._decide(tokens, needs="whole_document")
        return self._send(decision, messages)

    def _decide(self, tokens: int, **known: Any) -> RoutingDecision:
        decision = self.router.decide(prompt_tokens=tokens, unavailable=self.down, **known)
        if decision.action is Action.REFUSE:
            raise InfeasibleError(decision.reason)
        if decision.action is Action.UNAVAILABLE:
            raise UnavailableError(decision.reason)
        note(decision.reason)
        return decision

    def _send(
        self, decision: RoutingDecision, messages: list[Message], max_tokens: int | None = None
    ) -> str:
        """The answer of the decision's model, or of the first stand-in that answers."""
        names = [str(decision.model), *decision.stand_ins]
        for name in names:
            route = self.router.policy.route(name)
            try:
                answer = self.client.chat.completions.create(
                    model=name,
                    messages=messages,
                    max_tokens=max_tokens or route.reserved_output_tokens,
                    extra_headers=dict.fromkeys(decision.headers, name),
                )
            except self.outages as error:
                note(f"{name} does not answer: {error}")
                self.down.add(route.instance)
                continue
            choice = answer.choices[0]
            if choice.finish_reason == "length":
                note("this answer was cut at its longest length")
            return choice.message.content or ""
        raise UnavailableError(f"nobody answers of {', '.join(names)}")

    def _shortened(self, messages: list[Message], decision: RoutingDecision) -> list[Message]:
        """The messages with their past summarised, which the conversation goes on with."""
        if self.router.policy.conversation is None:
            return messages
        fitted = fit_history(
            messages,
            self.router,
            self._summarise,
            count_tokens=self.tokens.count,
            max_prompt_tokens=decision.max_prompt_tokens,
        )
        self.talk = fitted[:-1]
        return fitted

    def _summarise(self, messages: list[Message], max_tokens: int) -> str:
        text = "\n\n".join(f"{each['role']}: {each['content']}" for each in messages)
        # A word is rarely more than two tokens; max_tokens ends what goes on all the same.
        prompt = [_said("user", SUMMARISE.format(words=max(1, max_tokens // 2), text=text))]
        decision = self._decide(self.tokens.count(prompt), max_tokens=max_tokens)
        return self._send(decision, prompt, max_tokens)


def _said(role: str, text: str) -> Message:
    return {"role": role, "content": text}


def answer_all(app: App, questions: Iterable[str], api_error: type[Exception]) -> int:
    """Print the answers; the exit code is that of the last question."""
    code = 0
    for question in filter(None, map(str.strip, questions)):
        try:
            print(app.ask(question), flush=True)
            code = 0
        except (AdvisorError, api_error) as error:
            fix = getattr(error, "fix", "")
            print(f"error: {error}" + (f"\n  fix: {fix}" if fix else ""), file=sys.stderr)
            code = getattr(error, "exit_code", EXIT_CANNOT_KNOW)
    return code


def main() -> int:
    import openai  # noqa: PLC0415  the functions above take any client, and so do their tests

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--routing", type=Path, default=os.environ.get("ROUTING", "routing.yaml"))
    parser.add_argument("--document", type=Path, help="file, or folder of .txt and .md files")
    parser.add_argument("--chat", action="store_true", help="ask one question after another")
    parser.add_argument("question", nargs="?")
    options = parser.parse_args()
    if options.chat == bool(options.question):
        parser.error("give either a question or --chat")
    try:
        app = App(
            Router(options.routing),
            openai.OpenAI(),
            read_document(options.document) if options.document else "",
            outages=(openai.APIConnectionError, openai.InternalServerError),
        )
    except (AdvisorError, openai.OpenAIError, OSError, ValueError) as error:
        parser.error(": ".join(filter(None, (getattr(error, "where", ""), str(error)))))
    return answer_all(app, sys.stdin if options.chat else [options.question], openai.OpenAIError)


if __name__ == "__main__":
    sys.exit(main())
