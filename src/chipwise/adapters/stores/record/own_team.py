"""The eleventh migration: whoever has a team submits for it. A job without one would be held to no limit of that team, and its
lead would not see it; our client chooses the team by itself, other clients did not have to."""

from __future__ import annotations

_ME = "current_user::text"

OWN_TEAM = (
    "DROP POLICY submitted ON jobs",
    f"""CREATE POLICY submitted ON jobs FOR INSERT WITH CHECK (
        owner = {_ME} AND (SELECT belongs({_ME})) AND may_submit({_ME}, place)
        AND CASE team WHEN '' THEN NOT EXISTS (SELECT teams_of({_ME})) ELSE team IN (SELECT teams_of({_ME})) END)""",
)
