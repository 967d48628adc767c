"""One engine's scheduler, step by step: who runs, who reads a prompt, who waits.

As vLLM's V1 scheduler with chunked prefill (vllm/v1/core/sched/scheduler.py#schedule): running
requests get one token each, prompts are read in chunks within the rest of the token budget, waiting
requests follow in the order of their arrival while there are places and enough free KV cache for
their whole prompt, which is taken chunk by chunk. Where the cache is full the request that was
admitted last gives its place back and is read again later, with what it has generated.
``tests/real/test_real_scheduler.py`` holds it against vLLM's own.

Steps between two events are alike but for the context, which grows by a token each: they are taken
at once, with the context in their middle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from math import ceil

from vllm_advisor.sizing.replay_sequence import Elsewhere, ReplayedSequence
from vllm_advisor.sizing.replay_tally import Histogram, Tally
from vllm_advisor.sizing.step_function import StepSeconds
from vllm_advisor.types.replay import ReplayRequest

_MANY = 1 << 60


class Engine:
    """Replays the requests of one engine, or of one of the batches that a pipeline works on.

    Args:
        seconds: of a step.
        requests: in the order of their arrival.
        seats: requests that run at once, at most.
        budget: tokens of one step, at most.
        kv_tokens: tokens that the KV cache holds.
        delay: seconds from arrival until the scheduler sees a request.
        users: of a closed loop, in which a request follows as soon as another is done; arrivals of
            the requests then say nothing.
        longest_run: steps that are taken at once, at most.
        warm_up: first requests; times between tokens count from when the next one arrives.
        elsewhere: prompts of other engines that share the experts of this one.
    """

    def __init__(
        self,
        seconds: StepSeconds,
        requests: Sequence[ReplayRequest],
        *,
        seats: int,
        budget: int,
        kv_tokens: int,
        delay: float,
        users: int | None = None,
        longest_run: int = _MANY,
        warm_up: int = 0,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self._seconds = seconds
        self._requests = requests
        self._seats = min(seats, budget)
        self._budget = budget
        self._kv_tokens = kv_tokens
        self._delay = delay
        self._closed = users is not None
        self._longest_run = longest_run
        self._warm_up = warm_up
        self._elsewhere = elsewhere
        self._owed = 0.0  # prompt tokens that were due elsewhere and are in no step yet
        self.tally = Tally()
        self.now = 0.0
        #: (arrival, first token, last token) of each request.
        self.times: list[tuple[float, float, float]] = [(0.0, 0.0, 0.0)] * len(requests)
        self._coming = deque(
            (delay, 0.0, index) if self._closed else (arrival + delay, arrival, index)
            for index, arrival in enumerate(r.arrival for r in requests[:users])
        )
        self._given = len(self._coming)  # requests that have an arrival
        self._waiting: deque[ReplayedSequence] = deque()
        self._reading: deque[ReplayedSequence] = deque()
        self._admitted: list[ReplayedSequence] = []  # in order, with some that have ended
        self._ends: list[tuple[int, int, ReplayedSequence]] = []  # step, serial
        self._generating = 0
        self._generated_kv = 0  # tokens in the cache of those that generate
        self._reading_kv = 0  # the same, of those that read
        self._step = 0
        self._serial = 0

    def run(self) -> None:
        """Until every request is served."""
        while True:
            self._arrive()
            if not (self._generating or self._reading or self._waiting):
                if not self._coming:
                    return
                self.now = self._coming[0][0]
                continue
            tokens, pairs = self._schedule()
            if tokens:
                self._take(1, tokens, pairs / tokens)
                self._read()
            else:
                self._take(self._alike(), 0, 0.0)
            self._end()

    def _arrive(self) -> None:
        """Requests that have come since the last step wait."""
        coming, now = self._coming, self.now
        if not (coming and coming[0][0] <= now):
            return
        requests, waiting, tally = self._requests, self._waiting, self.tally
        while coming and coming[0][0] <= now:
            ready, arrival, index = coming.popleft()
            waiting.append(ReplayedSequence(index, arrival, ready, requests[index]))
            if index == self._warm_up:
                tally.itl = Histogram()
        tally.waiting_most = max(tally.waiting_most, len(waiting))
        if not self._closed:
            if tally.waiting_at_half is None and len(coming) <= len(requests) // 2:
                tally.waiting_at_half = len(waiting)
            if not coming:
                tally.waiting_at_last = len(waiting)

    def _schedule(self) -> tuple[int, float]:
        """Choose the prompt tokens of the next step.

        Returns:
            How many there are, and how many pairs of tokens their attention sees.
        """
        while self._used() + self._generating > self._kv_tokens:
            self._preempt()
        budget = self._budget - self._generating
        tokens, pairs = 0, 0.0
        reading, waiting = self._reading, self._waiting
        if reading:  # one: the next is admitted only where budget is left
            one = reading[0]
            tokens = min(one.left, budget)
            if self._used() + self._generating + tokens > self._kv_tokens:
                self._preempt()
                return 0, 0.0
            pairs = tokens * (one.prompt + one.generated - one.left + tokens / 2)
            one.left -= tokens
            self._reading_kv += tokens
            budget -= tokens
        if not (waiting and budget):
            return tokens, pairs
        seats = self._seats - self._generating - len(reading)
        while waiting and budget and seats:
            one = waiting[0]
            need = one.prompt + one.generated
            if self._used() + self._generating + need > self._kv_tokens:
                break
            waiting.popleft()
            self.tally.waiting_seconds += self.now - one.queued
            self._admitted.append(one)
            reading.append(one)
            known = min(one.cached, need - 1)  # vLLM computes the last token in any case
            chunk = min(need - known, budget)
            pairs += chunk * (known + chunk / 2)
            one.left = need - known - chunk
            self._reading_kv += known + chunk
            tokens += chunk
            budget -= chunk
            seats -= 1
        return tokens, pairs

    def _used(self) -> int:
        """Tokens in the KV cache."""
        return self._generated_kv + self._reading_kv

    def _preempt(self) -> None:
        """The request that was admitted last waits again, before all others.

        It does not fit into the same step, in which vLLM would not admit it either.
        """
        one = self._admitted.pop()
        while not (one.serial or one.left):
            one = self._admitted.pop()  # they have ended
        if one.serial:
            one.generated += self._step - one.joined
            one.serial = 0
            one.last = self.now
            self._generating -= 1
            self._generated_kv -= one.prompt + one.generated - 1
        else:
            self._reading.pop()
            self._reading_kv -= one.prompt + one.generated - one.left
            one.left = 0
        one.queued = self.now
        self._waiting.appendleft(one)
        self.tally.preemptions += 1

    def _alike(self) -> int:
        """Steps until something happens: an answer ends, the cache is full, a request arrives."""
        ends, generating = self._ends, self._generating
        while ends[0][2].serial != ends[0][1]:
            heappop(ends)  # of a request that was preempted
        steps = min(ends[0][0] - self._step, self._longest_run)
        used = self._used()
        if used + generating * steps > self._kv_tokens:
            steps = (self._kv_tokens - used) // generating
        free = self._seats > generating + len(self._reading)
        if steps > 1 and free and self._coming and not self._waiting:
            # Once with the context of the first step, then with that of the middle.
            until, limit = self._coming[0][0] - self.now, steps
            for _ in range(2):
                context = self._generated_kv / generating + (steps + 1) / 2
                steps = min(limit, ceil(until / self._seconds(generating, context, 0, 0.0, 0.0)))
                if steps == limit:
                    break
            steps = max(1, steps)
        if self._elsewhere is not None:
            steps = min(steps, self._until_elsewhere(self._elsewhere))
        return steps

    def _until_elsewhere(self, elsewhere: Elsewhere) -> int:
        """Steps before the one that meets a prompt of another engine; 1 where it is the next."""
        missing = elsewhere.chunk - self._owed
        if missing <= 0:
            return 1
        context = self._generated_kv / self._generating + 1
        seconds = self._seconds(self._generating, context, 0, 0.0, 0.0)
        return max(1, ceil(missing / (elsewhere.rate * seconds)))

    def _take(self, steps: int, tokens: int, prompt_context: float) -> None:
        """Let the time of these steps pass; each running request gets a token in each."""
        generating, tally = self._generating, self.tally
        context = self._generated_kv / generating + (steps + 1) / 2 if generating else 0.0
        other = 0.0
        if self._elsewhere is not None and self._owed >= self._elsewhere.chunk:
            other = self._owed - self._owed % self._elsewhere.chunk
            self._owed -= other
        seconds = self._seconds(generating, context, tokens, prompt_context, other)
        if self._elsewhere is not None:
            self._owed += self._elsewhere.rate * seconds * steps
        passed, running = seconds * steps, generating + len(self._reading)
        used = self._used()
        tally.kv_seconds += (used + generating * (steps + 1) / 2) * passed
        tally.running_seconds += running * passed
        used += generating * steps
        tally.kv_most = max(tally.kv_most, used)
        tally.running_most = max(tally.running_most, running)
        if generating:
            tally.itl.add(seconds, generating * steps)
            self._generated_kv += generating * steps
        if tokens:
            tally.read_tokens += tokens
            tally.prompt_steps += 1
        tally.steps += steps
        self._step += steps
        self.now += passed

    def _read(self) -> None:
        """Requests whose prompt has been read get a token, and generate from now on."""
        reading = self._reading
        while reading and not reading[0].left:
            one = reading.popleft()
            self._reading_kv -= one.prompt + one.generated
            if one.generated:
                self.tally.itl.add(self.now - one.last)
            else:
                one.first = self.now
            one.generated += 1
            self._serial += 1
            one.serial, one.joined = self._serial, self._step
            self._generating += 1
            self._generated_kv += one.prompt + one.generated - 1
            heappush(self._ends, (self._step + one.output - one.generated, one.serial, one))

    def _end(self) -> None:
        """Requests that have their last token leave, and in a closed loop others follow."""
        ends, now = self._ends, self.now
        while ends and ends[0][0] <= self._step:
            _, serial, one = heappop(ends)
            if one.serial != serial:
                continue  # it was preempted
            one.serial = 0
            self._generating -= 1
            self._generated_kv -= one.prompt + one.output - 1
            self.times[one.index] = (one.arrival, one.first, now)
            if self._closed and self._given < len(self._requests):
                self._coming.append((now + self._delay, now, self._given))
                self._given += 1
        if len(self._admitted) > 2 * self._seats + 64:
            self._admitted = [one for one in self._admitted if one.serial or one.left]
