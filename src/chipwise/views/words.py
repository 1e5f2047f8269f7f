"""The words of a plan for who shows one; they are written in the planner, which the report and the renderer ask as well."""

from __future__ import annotations

from chipwise.planner.explain.pipeline_words import pipeline_headline, together_words, without
from chipwise.planner.explain.reason_words import (
    example_words,
    lost,
    missing_words,
    nothing_words,
    rule_words,
    words,
)
from chipwise.planner.explain.remedy_words import remedy_words
from chipwise.planner.explain.risks import pipeline_risk_line, risk_line
from chipwise.planner.explain.row_words import brief, emissions, running
from chipwise.planner.explain.why_words import why_words
from chipwise.planner.explain.words import PROVENANCE, count_words, headline, no_service, objective_words
from chipwise.planner.quotas import notes as quota_notes

__all__ = [
    "PROVENANCE",
    "brief",
    "emissions",
    "example_words",
    "count_words",
    "headline",
    "lost",
    "missing_words",
    "no_service",
    "nothing_words",
    "pipeline_headline",
    "objective_words",
    "pipeline_risk_line",
    "quota_notes",
    "remedy_words",
    "risk_line",
    "rule_words",
    "running",
    "together_words",
    "why_words",
    "without",
    "words",
]
