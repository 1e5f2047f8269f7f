"""The Python API: what `import chipwise as cw` offers. Values in, values out; nothing is printed.

Each verb is a function whose first argument is an opened `Session`; `session.py` gathers them as its methods, and the verbs of
the package are those of one session that is opened when it is first used. Results are made from the same views that `--json`
prints, so that a plan is the same plan wherever it was asked for.
"""
