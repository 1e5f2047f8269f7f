"""One file per target. The file's name is what people type; it defines `render(deployment) -> list[File]` and `FITS`.

`FITS` says in one line what it can express, for the list of targets. A target that cannot express a plan raises
`CannotRender` with what it cannot and what can.

Beside them it may define `EXPRESSES`, which parts of a plan it holds beyond one machine type, bought one way, in one place, at
all times ("layers", "regions", "hours"; a note tells the others; "no run" is of what starts nothing), and `WRITES`, files that
it writes for anything but a pipeline, so that what stands in their way is told before a plan is made. `MANIFESTS` is of targets
whose objects have names that stay, so that a layout can hold them; `STARTS_MACHINES` of those that order machines themselves.
"""
