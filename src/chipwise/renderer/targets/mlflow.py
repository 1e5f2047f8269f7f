"""MLflow: a Python file that writes down what the plan predicts, runs the command, and logs what was measured beside it."""

from __future__ import annotations

from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch.program_notes import program_note
from chipwise.renderer.launch.starting import on_one_machine
from chipwise.renderer.layout import run_machines
from chipwise.renderer.program_files import Setting, python_files
from chipwise.renderer.quoting import one_line

FITS = "anything that is planned: predicted time, cost and latency beside measured ones"
EXPRESSES = frozenset({"layers", "regions", "no run", "groups"})  # what is measured is compared with the plan as a whole
WRITES = ("track.py",)


def render(deployment: Deployment) -> list[File]:
    stages = {_short(stage.title): _figures(stage) for stage in deployment.stages or (deployment,)}
    settings = (
        Setting("TAGS", _tags(deployment)),
        Setting("STAGES", stages),
    )
    return python_files("track.py", "mlflow_track.py", heading(deployment, _programs(deployment)), settings)


def _programs(deployment: Deployment) -> str:
    """Who writes what is run: once for each way."""
    stages = deployment.stages or (deployment,)
    scripts = [stage for stage in stages if stage.software.command[:1] == ("python",)]
    notes = [*(program_note(stage) for stage in scripts), *(_places(stage) for stage in stages)]
    return "\n".join(dict.fromkeys(note for note in notes if note))


def _places(stage: Deployment) -> str:
    """A job over several machines is not started by one `track.py`."""
    machines = run_machines(stage)
    if stage.form is not Form.JOB or machines < 2 or stage.node.kind == "tpu":
        return ""
    return (
        f"{_short(stage.title)} runs on {machines} machines: start it on each of them as another target does, and give\n"
        "what was measured with --measured; track.py alone runs its command on one."
    )


def _short(text: str) -> str:
    return one_line(text) or "run"


def _tags(deployment: Deployment) -> dict[str, str]:
    return {f"chipwise.{_short(key)}": _short(value) for key, value in deployment.labels.items()} | {
        "chipwise.workload": _short(deployment.title),
        "chipwise.kind": deployment.kind,
    }


def _figures(stage: Deployment) -> dict[str, object]:
    return {
        "about": _short(stage.predicted.sentence or stage.description or stage.title),
        "command": [word.replace("\x00", "") for word in on_one_machine(stage)],
        "usd_per_hour": round(stage.predicted.usd_per_hour, 6),
        "settings": _settings(stage),
        "predicted": _predicted(stage),
    }


def _settings(stage: Deployment) -> dict[str, object]:
    node = stage.node
    values: dict[str, object] = {
        "provider": node.provider,
        "region": node.region,
        "machine": node.machine,
        "machines": stage.machines,
        "chip": node.chip,
        "chips_per_machine": node.chips,
        "purchase": stage.purchase,
        "image": _short(stage.software.image),
    }
    if stage.model is not None:
        values |= {"model": _short(stage.model.name), "precision": stage.model.precision}
    return values | {f"split.{key.replace(' ', '_')}": value for key, value in stage.split.as_dict().items()}


def _predicted(stage: Deployment) -> dict[str, float]:
    """By the names that measured figures have."""
    predicted = stage.predicted
    figures: dict[str, float] = {}
    if stage.form is Form.JOB:
        figures |= {
            "seconds": predicted.seconds,
            "seconds low": predicted.low_s,
            "seconds high": predicted.high_s,
            "usd": predicted.usd,
        }
    else:
        figures["usd_per_month" if predicted.per == "month" else "usd"] = predicted.usd
    figures |= dict(predicted.latency) | {"kg_co2e": predicted.kg, "watts": predicted.watts}
    if stage.scaling is not None and stage.scaling.per_replica:
        figures["requests_per_second"] = stage.scaling.per_replica * stage.scaling.usual
    return {name: float(f"{value:.6g}") for name, value in figures.items()}
