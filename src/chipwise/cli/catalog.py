import typer
app = typer.Typer()

@app.command()
def status() -> None: ...
