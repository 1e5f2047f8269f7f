"""Steps of a program that does not mark them: the operations that come again and again in the same order."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

_OPERATION_LIMIT = 50_000  # operations that are kept
_LONGEST = 5_000  # operations of one step
_EVERY_S = 0.5
_ENOUGH, _ENOUGH_S = 6, 2.0  # steps, and seconds of them, after which nothing is learnt from more
Sums = tuple[float, ...]


def period(sequence: Sequence[int], longest: int = _LONGEST) -> int | None:
    """The shortest length that the end of the sequence repeats at least three times."""
    last = len(sequence) - 1
    for length in range(1, min(longest, len(sequence) // 3) + 1):
        if sequence[last] != sequence[last - length] or sequence[last] != sequence[last - 2 * length]:
            continue
        end = sequence[last - length + 1 :]
        if (
            end
            == sequence[last - 2 * length + 1 : last - length + 1]
            == sequence[last - 3 * length + 1 : last - 2 * length + 1]
        ):
            return length
    return None


class Repeats:
    """Operations by what they are, with all sums up to and with each of them: FLOP, bytes, seconds inside, unknown, net."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._sequence: list[int] = []
        self._sums: list[Sums] = []
        self._looked = 0.0

    def add(self, signature: Hashable, sums: Sums) -> None:
        if len(self._sequence) >= 2 * _OPERATION_LIMIT:
            del self._sequence[:_OPERATION_LIMIT]
            del self._sums[:_OPERATION_LIMIT]
        self._sequence.append(self._numbers.setdefault(signature, len(self._numbers)))
        self._sums.append(sums)

    def is_due(self, now: float) -> bool:
        if now - self._looked < _EVERY_S:
            return False
        self._looked = now
        return True

    def summary(self) -> dict[str, object]:
        """Of the steps at the end that are alike; empty where there are none."""
        length = period(self._sequence)
        if length is None:
            return {}
        steps = 1
        last = len(self._sequence)
        while (steps + 1) * length <= last and (
            self._sequence[last - (steps + 1) * length : last - steps * length] == self._sequence[last - length :]
        ):
            steps += 1
        counted = steps - 1  # the first of them begins behind an operation whose end is not known to be alike
        after, before = self._sums[-1], self._sums[last - 1 - counted * length]
        flop, moved, inside_s, unknown_s, net_s = ((end - start) / counted for start, end in zip(before, after, strict=True))
        return {
            "step": "repeat",
            "period": length,
            "repeats": steps,
            "step_flop": [flop],
            "step_bytes": [moved],
            "step_inside_s": inside_s,
            "step_unknown_s": unknown_s,
            "step_net_s": net_s,
            "done": counted >= _ENOUGH and counted * net_s >= _ENOUGH_S,
        }
