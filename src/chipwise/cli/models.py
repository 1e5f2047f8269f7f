import click


@click.command()
def models() -> None: ...
