import click


@click.command()
def explain() -> None: ...
