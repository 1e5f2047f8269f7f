import click


@click.command()
def catalog() -> None: ...
