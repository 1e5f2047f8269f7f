"""Measures a real device with PyTorch: small known pieces of work, each timed, gathered into a `perf.profile.Profile`.

`measure` is the door. One file per kind of work (`memory`, `gemm`, `attention`, `elementwise`, `launch`, `layer`) lists its
cases as values; `timing` runs a case, `measure` keeps the time limit. `collectives` starts processes of its own.
"""
