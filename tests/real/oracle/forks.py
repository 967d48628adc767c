"""One process per GPU, because vLLM asks the platform while it is imported; one fork per question."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

from .gpus import GPUS
from .questions import Question

CONTEXT = multiprocessing.get_context("fork")
IMPORT_SECONDS = 300.0  # of vLLM, from a cold disk


def answers(questions: list[Question], *, timeout: float) -> Iterator[tuple[Question, Any]]:
    """Answer GPU by GPU, one process at a time.

    Args:
        questions: in any order; those of a GPU are answered in theirs.
        timeout: seconds per question.

    Yields:
        The question and its row.

    Raises:
        RuntimeError: vLLM cannot be imported; its traceback is on stderr.
    """
    with tempfile.TemporaryDirectory(prefix="oracle-") as cache:
        os.environ["VLLM_CACHE_ROOT"] = cache  # a real server must not find what is faked here
        for gpu in dict.fromkeys(question.gpu for question in questions):
            asked = [question for question in questions if question.gpu == gpu]
            yield from _answers(gpu, asked, timeout)


def _answers(gpu: str, asked: list[Question], timeout: float) -> Iterator[tuple[Question, Any]]:
    receiver, sender = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_answer_all, args=(gpu, asked, timeout, receiver, sender))
    process.start()
    sender.close()
    try:
        for question in asked:
            if not receiver.poll(timeout + IMPORT_SECONDS):
                raise RuntimeError(f"no answer in {timeout + IMPORT_SECONDS:.0f} s")
            yield question, receiver.recv()
    except EOFError as error:
        raise RuntimeError("the process that imports vLLM ended") from error
    finally:
        process.kill()
        process.join()


def _answer_all(
    gpu: str,
    questions: list[Question],
    timeout: float,
    receiver: Connection,
    sender: Connection,
) -> None:
    from . import engine, fake_cuda

    receiver.close()  # so that sending fails, and this process ends, when the asking one is gone
    fake_cuda.install(GPUS[gpu])
    engine.prepare()
    for question in questions:
        sender.send(_in_a_fork(question, timeout))
    # The receiver kills this process when it has all.
    sender.close()


def _in_a_fork(question: Question, timeout: float) -> dict[str, Any]:
    receiver, sender = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_answer_one, args=(question, sender))
    process.start()
    sender.close()
    failed = question.row() | {"ok": False}
    try:
        if not receiver.poll(timeout):
            return failed | {"error": f"oracle: no answer in {timeout:.0f} s"}
        return receiver.recv()
    except EOFError:
        process.join()
        return failed | {"error": f"oracle: the process ended with {process.exitcode}"}
    finally:
        process.kill()
        process.join()


def _answer_one(question: Question, sender: Connection) -> None:
    from . import engine

    os.environ.update(question.env)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)  # the answer's place
    if not question.verbose:
        os.dup2(silent, 2)
    sender.send(engine.answer(question))
