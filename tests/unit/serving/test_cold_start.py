"""What a start took, in words: short when it is ready, in full in its story."""

from __future__ import annotations

from chipwise.serving.cold_start import ColdStart, cold_start_words, part_words


def test_the_line_of_a_ready_replica_fits_a_terminal_and_the_story_has_the_plan() -> None:
    start = ColdStart(0.647, 2.153, 0.627, weight_bytes=13.3e6, expected_s=0.0133)
    assert len(f"assistant-prod-12 is ready: {part_words(start)}") <= 80
    words = cold_start_words(start)
    assert words.startswith("cold start 3.43 s: process 647 ms, loading 2.15 s, first token 627 ms;")
    assert "the plan counts 13.3 ms for reading 13.3 MB of weights, without" in words
