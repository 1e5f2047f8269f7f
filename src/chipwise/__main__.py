"""`python -m chipwise`: the same as the `chipwise` command."""

from chipwise.cli.main import run

run()
