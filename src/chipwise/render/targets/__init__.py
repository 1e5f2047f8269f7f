"""One file per target. The file's name is what people type; it defines `render(deployment) -> list[File]` and `FITS`.

`FITS` says in one line what it can express, for the list of targets. A target that cannot express a plan raises
`CannotRender` with what it cannot and what can.
"""
