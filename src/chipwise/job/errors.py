"""What can go wrong around a checkpoint, in the words of whoever trains.

CannotKeep       the state holds something that no checkpoint can hold
CannotSave       a checkpoint could not be written; earlier ones and the training state are as they were
CannotRestore    a checkpoint is whole, but does not fit the state, the number of ranks or what is installed here
NothingWhole     there are checkpoints, and every one of them is damaged
NoAnswer         the store did not answer in time when checkpoints were looked for
Fenced           a newer attempt, or another process, owns this place: this one must stop writing
"""

from __future__ import annotations

from chipwise.errors import BadInput, OutsideFailed


class CannotKeep(BadInput):
    """`field` is the value's place in the state."""

    def __init__(self, field: str, what: str, remedy: str) -> None:
        super().__init__(f"{field}: {what}.", remedy=remedy)
        self.field = field


class CannotSave(OutsideFailed):
    pass


class CannotRestore(BadInput):
    pass


class NothingWhole(OutsideFailed):
    pass


class NoAnswer(OutsideFailed):
    pass


class Fenced(OutsideFailed):
    pass
