"""What engines.yaml may say of a cluster."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    kubeconfig: str = ""  # none: as kubectl finds it
    context: str = ""  # none: the current one
    namespace: str = ""  # none: the context's
    queue: str = ""  # of Kueue, in that namespace; none: the work waits in no queue
    image: str = ""  # in which plain commands run
    clouds: tuple[str, ...] | list[str] = ()  # whose machines it has or may get; none: any
    regions: tuple[str, ...] | list[str] = ()
