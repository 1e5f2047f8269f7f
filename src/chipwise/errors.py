"""The error tree: what happened, why with the numbers, and the next step.

    ChipwiseError                exit code
     |- BadInput                 2   the user can mend it: a name, a file, an option
     |   |- UnknownName              a name nobody knows; carries the nearest ones
     |   |   `- UnknownOption          a keyword that a function does not take; Python's TypeError as well
     |   |- CannotRender             a target that cannot express a plan
     |   |- InvalidSettings          arguments or flags that cannot be, all at once
     |   `- InvalidFile              one file, all of its problems at once
     |- NoResult                 1   a fair question with an empty answer
     `- OutsideFailed            3   a service or tool of somebody else's did not do its part
         |- MissingExtra             an optional dependency is not installed
         |- NotAllowed               credentials missing or refused
         |- NotFound                 the outside thing does not exist
         `- TryLater                 throttled, timed out, unreachable

Anything else that reaches the top is a bug in chipwise: exit code 70, and the message asks for a report.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace


class ChipwiseError(Exception):
    """Base of every error that is meant for the reader; `remedy` says what to try next."""

    exit_code = 70

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        if message.endswith("..") and not message.endswith("..."):
            message = message[:-1]  # ours behind the one of somebody else's sentence
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __reduce__(self) -> tuple[object, ...]:
        """As it is, whatever it was made from: an error of another process is the same error."""
        return _again, (type(self), self.args, self.__dict__)

    def __str__(self) -> str:
        if self.remedy is None:
            return self.message
        stop = "" if self.message.rstrip().endswith((".", "!", "?", ":")) else "."
        return f"{self.message}{stop} {self.remedy}"


def _again(kind: type[ChipwiseError], args: tuple[object, ...], state: dict[str, object]) -> ChipwiseError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class BadInput(ChipwiseError):
    exit_code = 2


class UnknownName(BadInput):
    """A name that resolves to nothing, with the names that look like it."""

    def __init__(
        self, noun: str, name: str, nearest: Sequence[str] = (), *, remedy: str | None = None, known: Sequence[str] = ()
    ) -> None:
        hint = f"Did you mean {', '.join(nearest)}?" if nearest else None
        listing = f"Known: {', '.join(known)}." if known else None
        excerpt = name if len(name) <= 60 else name[:57] + "..."  # a pasted document is not repeated
        super().__init__(f"No {noun} is called {excerpt!r}.", remedy=" ".join(filter(None, (hint, listing, remedy))) or None)
        self.noun = noun
        self.name = name
        self.nearest = tuple(nearest)
        self.known = tuple(known)


class UnknownOption(UnknownName, TypeError):
    """A keyword that a function does not take, with those that were probably meant."""

    def __init__(self, name: str, nearest: Sequence[str] = (), *, remedy: str | None = None) -> None:
        super().__init__("option", name, nearest, remedy=remedy)


class CannotRender(BadInput):
    """A target that cannot express a plan; the remedy names what can."""


_READABLE = 100  # problems of one file that are printed; nobody reads on


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a file. `field` is a dotted path; `line` counts from 1, None where there is none."""

    field: str
    message: str
    line: int | None = None
    allowed: str | None = None
    nearest: tuple[str, ...] = ()

    def __str__(self) -> str:
        sentence = self.message if self.message.endswith((".", "!", "?")) else f"{self.message}."
        parts = [f"{self.field}: {sentence}" if self.field else sentence]
        if self.allowed:
            parts.append(f"Allowed: {self.allowed}.")
        if self.nearest:
            parts.append(f"Did you mean {', '.join(self.nearest)}?")
        return " ".join(parts)


class InvalidSettings(BadInput):
    """Settings that cannot be, by the names that they have where it was found out."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems

    def with_names(self, names: Mapping[str, str]) -> InvalidSettings:
        """The same by the names that whoever asked gave them: `shard` as --zero, in what is allowed too."""
        mentioned = re.compile(r"\b(" + "|".join(map(re.escape, names)) + r")\b")

        def renamed(problem: Problem) -> Problem:
            fields = ", ".join(names.get(name, name) for name in problem.field.split(", "))
            allowed = problem.allowed and mentioned.sub(lambda found: names[found[1]], problem.allowed)
            return replace(problem, field=fields, allowed=allowed)

        return InvalidSettings(*map(renamed, self.problems)) if names else self


class InvalidFile(BadInput):
    """All the problems of one file, so that a reader mends them in one go."""

    def __init__(self, path: str, problems: Sequence[Problem], *, remedy: str | None = None) -> None:
        lines = [f"{path}:{p.line}: {p}" if p.line is not None else f"{path}: {p}" for p in problems[:_READABLE]]
        if len(problems) > _READABLE:
            lines.append(f"{path}: and {len(problems) - _READABLE:,} more problems; fix these first.")
        super().__init__("\n".join(lines), remedy=remedy)
        self.path = path
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return self.message if self.remedy is None else f"{self.message}\n{self.remedy}"


class NoResult(ChipwiseError):
    exit_code = 1


class OutsideFailed(ChipwiseError):
    exit_code = 3


class MissingExtra(OutsideFailed):
    """An optional part is not installed; the message holds the pip line that installs it."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs an optional part that is not installed.", remedy=f"Try: pip install 'chipwise[{extra}]'"
        )
        self.extra = extra


class NotAllowed(OutsideFailed):
    pass


class NotFound(OutsideFailed):
    pass


class TryLater(OutsideFailed):
    pass
