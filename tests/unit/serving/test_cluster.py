"""When a start or a rollout in a cluster is done, goes on, or has failed, and what somebody can do then."""

from __future__ import annotations

from dataclasses import replace

from chipwise.serving.cluster import (
    CRASHES,
    IMAGE_PATIENCE_S,
    Ailment,
    ChangeVerdict,
    ClusterChange,
    ClusterSight,
    Trouble,
    progress_words,
    remedy,
)

STARTS = ClusterSight("Deployment", version=2, wanted=2, waits="its containers are being created")
READY = replace(STARTS, updated=2, available=2, total=2, waits="")
IMAGE = Trouble(Ailment.IMAGE, "its image a:2 cannot be pulled: ErrImagePull: not found", "chat-x")


def _change(deadline_s: float = 900.0) -> ClusterChange:
    return ClusterChange(2, deadline_s, 0.0)


def test_it_is_done_when_all_replicas_of_the_version_serve_and_no_other_is_left() -> None:
    assert _change().after(READY, 5.0).verdict is ChangeVerdict.READY
    for sight in (
        replace(READY, version=1),
        replace(READY, updated=1),
        replace(READY, available=1),
        replace(READY, total=3),
    ):
        assert _change().after(sight, 5.0).verdict is ChangeVerdict.GOES_ON


def test_the_deadline_counts_from_the_last_replica_that_came() -> None:
    change = _change(100.0).after(replace(STARTS, updated=1, available=1, total=1), 99.0)
    assert change.after(STARTS, 198.0).verdict is ChangeVerdict.GOES_ON
    failed = change.after(STARTS, 199.0)
    assert (failed.verdict, failed.reason) == (
        ChangeVerdict.FAILED,
        "nothing came for 100 s: its containers are being created",
    )


def test_an_image_that_cannot_be_pulled_is_waited_for_as_long_as_a_registry_may_be_away() -> None:
    change = _change().after(replace(STARTS, trouble=IMAGE), 10.0)
    assert change.after(replace(STARTS, trouble=IMAGE), 9.9 + IMAGE_PATIENCE_S).verdict is ChangeVerdict.GOES_ON
    failed = change.after(replace(STARTS, trouble=IMAGE), 10.0 + IMAGE_PATIENCE_S)
    assert (failed.verdict, failed.reason) == (ChangeVerdict.FAILED, IMAGE.text)
    mended = change.after(STARTS, 50.0).after(replace(STARTS, trouble=IMAGE), 60.0)
    assert mended.after(replace(STARTS, trouble=IMAGE), 59.0 + IMAGE_PATIENCE_S).verdict is ChangeVerdict.GOES_ON


def test_a_replica_that_crashes_again_and_again_is_not_waited_for_and_one_without_a_machine_is() -> None:
    crashes = Trouble(Ailment.CRASHES, "it keeps crashing", "chat-x", CRASHES - 1)
    assert _change().after(replace(STARTS, trouble=crashes), 5.0).verdict is ChangeVerdict.GOES_ON
    failed = _change().after(replace(STARTS, trouble=replace(crashes, crashes=CRASHES)), 5.0)
    assert (failed.verdict, failed.reason) == (ChangeVerdict.FAILED, "it keeps crashing")
    nowhere = Trouble(Ailment.NO_NODE, "no node fits", "chat-x")
    assert _change().after(replace(STARTS, trouble=nowhere), 899.0).verdict is ChangeVerdict.GOES_ON
    assert _change().after(replace(STARTS, trouble=nowhere), 900.0).verdict is ChangeVerdict.FAILED


def test_what_the_cluster_gave_up_or_somebody_deleted_is_over_at_once() -> None:
    assert _change().after(replace(STARTS, is_stuck=True), 5.0).verdict is ChangeVerdict.FAILED
    assert _change().after(ClusterSight(""), 5.0).reason == "it was deleted"


def test_progress_says_how_many_serve_and_what_they_wait_for() -> None:
    assert progress_words(STARTS) == "0 of 2 replicas ready; its containers are being created"
    assert progress_words(replace(STARTS, wanted=1, trouble=IMAGE)) == f"0 of 1 replicas ready: {IMAGE.text}"
    rolling = replace(STARTS, updated=1, available=2, total=3, waits="")
    assert progress_words(rolling) == "1 of 2 replicas have version 2, 2 ready"


def test_each_ailment_has_a_remedy_of_its_own() -> None:
    told = {remedy(Trouble(ailment, "", "chat-x"), "team") for ailment in Ailment}
    assert len(told) == len(Ailment)
    assert "kubectl -n team logs chat-x --previous" in remedy(Trouble(Ailment.CRASHES, "", "chat-x"), "team")
    assert remedy(None, "team") == "`kubectl -n team describe pods` says more; --ready-within gives it longer."
