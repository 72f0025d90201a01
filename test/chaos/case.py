"""A case of the fault matrix: what is injected, what must happen, and the goals that its figures are shown beside."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trial import Trial


@dataclass(frozen=True)
class Goals:
    """In milliseconds; None where the issue or the matrix names none. Shown, never asserted."""

    detect_ms: float | None = None
    recover_ms: float | None = None


@dataclass(frozen=True)
class Case:
    """One row. `run` does one repetition; it injects the fault, checks what is expected and notes the figures."""

    id: str
    title: str
    fault: str
    expected: str
    run: Callable[["Trial"], None]
    goals: Goals = Goals()
    torchrun: str = ""  # Empty: not tried.
    # Part of the cause of a round's or the job's end, as `muster status`, the page, metrics and
    # `muster replay` show it; "": no end. None: there is no job, or nothing that could show it.
    shows: str | None = ""
    # Part of the trouble that is shown of a rank while its round runs (Trial.sees_trouble).
    trouble: str = ""
    detects: str = ""  # What the detection figure is; by default: until every remaining agent knows.
    recovers: str = ""  # What the recovery figure is; by default: until every worker of the next round runs.
    features: tuple[str, ...] = ()  # Of Muster; see tools.py.
    needs: tuple[str, ...] = ()  # Of the machine; see tools.py.
    most_repeats: int = 1000  # For cases whose fault takes long.


_cases: dict[str, Case] = {}


def case(id: str, title: str, **about) -> Callable[[Callable[["Trial"], None]], Callable[["Trial"], None]]:
    """Decorates the function that runs a case, and puts the case into the matrix."""
    def register(run: Callable[["Trial"], None]) -> Callable[["Trial"], None]:
        assert id not in _cases, id
        _cases[id] = Case(id=id, title=title, run=run, **about)
        return run
    return register


def matrix() -> list[Case]:
    """Every registered case, by the number of its fault."""
    def order(each: Case) -> tuple[int, str]:
        number, _, variant = each.id[1:].partition("-")
        return int(number), variant

    return sorted(_cases.values(), key=order)
