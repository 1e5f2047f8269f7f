"""Taking a role away: what is missing is named."""

from __future__ import annotations

from contextlib import closing

import pytest

from chipwise.adapters.stores.record.members import Member
from chipwise.api.running import membership
from chipwise.api.session.wiring import Session
from chipwise.errors import NotFound


class Listed:
    def __init__(self, *members: Member) -> None:
        self._members = members

    def all(self) -> list[Member]:
        return list(self._members)

    def remove(self, member: Member) -> bool:
        return member in self._members

    def close(self) -> None:
        pass


def test_a_member_of_a_team_is_removed_with_the_team_and_who_leaves_it_out_is_told(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = Listed(Member("mia", "vision"), Member("mia", "", "controller", "her place"), Member("ada"))
    monkeypatch.setattr(membership, "_members", lambda session: closing(members))
    with pytest.raises(NotFound, match="mia has no role member without a team") as refused:
        membership.remove(session, "mia", "", "member", "")
    assert "`chipwise members remove mia --team vision`" in str(refused.value)
    assert "`chipwise members remove mia --role controller --place 'her place'`" in str(refused.value)
    with pytest.raises(NotFound, match="bob has no role member that you may remove"):
        membership.remove(session, "bob", "", "member", "")
    membership.remove(session, "ada", "", "member", "")
