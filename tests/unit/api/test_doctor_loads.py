"""The doctor knows chips by their drivers' names, and loads no machines and prices for it."""

from __future__ import annotations

from chipwise.api.observe import doctor
from chipwise.api.session.wiring import Session
from chipwise.observe.sample import Recording, SampledDevice
from played_recordings import played


def test_a_chip_is_known_and_the_catalog_stays_unread(session: Session) -> None:
    recording = played()
    devices = (SampledDevice("nvidia:0", "NVIDIA H200"),)
    diagnosis = doctor.diagnosed(session, Recording(recording.started_at, devices, recording.samples))
    assert diagnosis.evidence.devices[0].device.chip == "H200"
    assert "catalog" not in vars(session)


def test_a_chip_of_the_user_s_own_is_known_too(session: Session) -> None:
    session.config.catalog_dir.mkdir()
    (session.config.catalog_dir / "mine.yaml").write_text("chips:\n  - {name: Zeta-9, like: h100}\n")
    assert session.chip_names.one_chip("zeta-9").chip.name == "Zeta-9"
    assert "catalog" not in vars(session)
    assert session.catalog.chips["Zeta-9"]
