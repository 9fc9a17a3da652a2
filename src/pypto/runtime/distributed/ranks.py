"""The ranks of a program at work: one thread each, which runs what it is given in order.

What ranks do to host memory keeps the order of the host function: a dispatch waits for earlier ones, of
whatever rank, that touch the same memory, unless both only read it.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from pypto.runtime.native_runtime import cancel, new_cancel_token

Work = Callable[[], object]
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Access:
    """A range of host memory that a dispatch reads or writes."""

    begin: int
    end: int
    writes: bool

    def conflicts(self, other: Access) -> bool:
        """Whether the order of the two matters."""
        return (self.writes or other.writes) and self.begin < other.end and other.begin < self.end


@dataclass(slots=True, eq=False)
class Task:
    """One dispatch: what it does, what it touches, and what has to be over before."""

    rank: int
    work: Work
    accesses: Sequence[Access]
    run: Run
    after: list[Task] = field(default_factory=list)
    done: threading.Event = field(default_factory=threading.Event)


class Run:
    """One execution of a host function: its tasks in flight and its first error."""

    def __init__(self, abort: Callable[[], None]) -> None:
        self._abort = abort
        self._guard = threading.Lock()
        self.token = new_cancel_token()
        self.open: list[Task] = []
        self.error: BaseException | None = None

    def fail(self, error: BaseException) -> None:
        """Remember the first error, and let nobody wait for a rank that has failed."""
        with self._guard:
            if self.error is None:
                self.error = error
        self._abort()

    def conflicting(self, accesses: Iterable[Access]) -> list[Task]:
        """The tasks in flight whose order with these accesses matters."""
        wanted = list(accesses)
        self.open = [task for task in self.open if not task.done.is_set()]
        return [task for task in self.open if any(a.conflicts(b) for a in wanted for b in task.accesses)]

    def wait(self, tasks: Iterable[Task] | None = None) -> None:
        """Wait for tasks (default: all) to end; raises the first error, which ends what still computes."""
        try:
            for task in list(self.open) if tasks is None else tasks:
                while not task.done.wait(_POLL_SECONDS):  # leaves Ctrl-C a chance
                    if self.error is not None:
                        cancel(self.token)
        except BaseException as error:
            self.fail(error)
            for task in self.open:
                while not task.done.wait(_POLL_SECONDS):
                    cancel(self.token)
            raise
        if self.error is not None:
            raise self.error


class Ranks:
    """The threads of all ranks."""

    def __init__(self, count: int) -> None:
        self._queues: list[queue.SimpleQueue[Task | None]] = [queue.SimpleQueue() for _ in range(count)]
        self._threads = [
            threading.Thread(target=self._serve, args=(waiting,), name=f"pypto-rank-{rank}", daemon=True)
            for rank, waiting in enumerate(self._queues)
        ]
        for thread in self._threads:
            thread.start()

    def __len__(self) -> int:
        return len(self._queues)

    def start(self, task: Task) -> None:
        """Hand a task to its rank."""
        task.after = task.run.conflicting(task.accesses)
        task.run.open.append(task)
        self._queues[task.rank].put(task)

    def stop(self) -> None:
        """End the threads after what they have been given."""
        for waiting in self._queues:
            waiting.put(None)
        for thread in self._threads:
            thread.join()

    @staticmethod
    def _serve(waiting: queue.SimpleQueue[Task | None]) -> None:
        while (task := waiting.get()) is not None:
            try:
                for earlier in task.after:
                    earlier.done.wait()
                if task.run.error is None:
                    task.work()
            except BaseException as error:
                task.run.fail(error)
            finally:
                task.after.clear()
                task.done.set()
