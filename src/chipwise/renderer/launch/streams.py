"""Live streams of video: which of them a chip works on, where each comes from and goes to, and what keeps all of them going.

A chip's encoders work on several streams at once, each with a process of its own. The processes of one chip stand in one
container: it asks for a whole chip, which every scheduler and autoscaler understands, while parts of one (time-slicing) are
unknown to Karpenter and named differently by each cluster. A small program (`programs/streams.sh`) starts the streams of its
group and starts again what ends, alone, so that one camera that is gone disturbs no other.
"""

from __future__ import annotations

from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender
from chipwise.renderer.launch.starting import folded
from chipwise.renderer.program_files import inline, program
from chipwise.renderer.quoting import shell

LIST = "streams.txt"
FOLDER = "/streams"
PORT = 9000  # of SRT by custom; the list has it where nothing better is known
MOST_ADDRESSES = 5_000  # that are listed one by one, some 60 bytes each: a ConfigMap holds 1 MiB, and nobody edits more by hand
PATTERN, NUMBER = "*", "{STREAM}"  # in the list: the line of all streams that have none of their own, and their number in it
_SOURCE, _OUT = "/data/in.ts", "/data/out-"  # in a command of ours: its one source, and its targets by number

PROGRAM = inline(program("streams.sh"))


def live(deployment: Deployment) -> bool:
    return deployment.streams > 0 and deployment.form is Form.SERVICE


def needs_addresses(deployment: Deployment) -> bool:
    """Our own command: it finds no stream by itself."""
    return live(deployment) and not deployment.software.is_custom


def refuse_streams(deployment: Deployment, target: str) -> None:
    """For targets that give no container its number: our command would look for a file that is not there, again and again."""
    if needs_addresses(deployment):
        raise CannotRender(
            f"{deployment.title} has {deployment.streams:,} streams, and {target} tells no machine which are its own.",
            remedy="Use --to kubernetes, kueue or compose, which give each its source and targets; or put a program that"
            " finds its streams by itself into program.command.",
        )


def groups(deployment: Deployment) -> int:
    """Containers in all: one for each chip of the plan, or for each machine that has none."""
    return max(min(deployment.machines * max(deployment.node.chips, 1), deployment.streams), 1)


def streams_per_group(deployment: Deployment) -> int:
    """Streams of one group; the last may have fewer."""
    return -(-deployment.streams // groups(deployment))


def stream_words(deployment: Deployment) -> tuple[str, ...]:
    """The command of a container that finds its number in GROUP."""
    arguments = (f"{FOLDER}/{LIST}", str(streams_per_group(deployment)), str(deployment.streams))
    return ("sh", "-c", PROGRAM, "streams", *arguments, *one_stream(deployment))


def one_stream(deployment: Deployment) -> tuple[str, ...]:
    """A command of the user's own reads STREAM, SOURCE and TARGETS itself; ours is given them in its places."""
    software = deployment.software
    if software.is_custom:
        return software.command
    first, *rest = map(_placed, software.command)
    lines = ["set -f # a URL may have a question mark", "set -- $TARGETS", *folded(f"exec {first}", rest)]
    return ("sh", "-c", "\n".join(lines) + "\n")


def _placed(word: str) -> str:
    if word == _SOURCE:
        return '"$SOURCE"'
    number = word.removeprefix(_OUT).partition(".")[0]
    return f'"${{{int(number) + 1}}}"' if word.startswith(_OUT) and number.isdigit() else shell([word])


def targets(deployment: Deployment) -> int:
    """Outputs of one stream, as far as the command tells."""
    outputs = sum(word.startswith(_OUT) for word in deployment.software.command)
    return outputs if outputs and not deployment.software.is_custom else 1


def stream_list(deployment: Deployment) -> str:
    """A line for each stream, by number: its source, then its targets. Nobody can know them, so these are of no place. Of many
    streams one pattern instead, from which each makes its own by its number: the list does not grow with them."""
    if not _listed(deployment):
        return f"{PATTERN} {_line(deployment, NUMBER)}\n"
    return "".join(f"{_line(deployment, str(index))}\n" for index in range(deployment.streams))


def _listed(deployment: Deployment) -> bool:
    return deployment.streams * (1 + targets(deployment)) <= MOST_ADDRESSES


def _line(deployment: Deployment, number: str) -> str:
    outputs = (f"srt://packager.example:{PORT}?streamid=publish:camera-{number}-{one}" for one in range(targets(deployment)))
    return " ".join((f"srt://source.example:{PORT}?streamid=camera-{number}", *outputs))


def list_reason(deployment: Deployment) -> str:
    outputs = targets(deployment)
    noun = "target" if outputs == 1 else f"{outputs} targets"
    if _listed(deployment):
        return f"A line for each of {deployment.streams} streams: its source, then its {noun}. Put your own: any URL of ffmpeg."
    return (
        f"One pattern for all of {deployment.streams:,} streams: a source, then its {noun}, with {NUMBER} where the number of a"
        f" stream goes, from 0. Put your own: any URL of ffmpeg. A line above it without {PATTERN} is that of one stream, the"
        " first line that of stream 0."
    )


def stream_reason(deployment: Deployment) -> list[str]:
    own = "Each finds its number in STREAM, its source in SOURCE and where it goes in TARGETS."
    usual = "The usual program of its kind: put your own into program.command; it finds STREAM, SOURCE and TARGETS as settings."
    share = f"{streams_per_group(deployment)} of the {deployment.streams} streams"
    return [
        f"Group GROUP, from 0, has {share} (see {LIST}), which share its chip.",
        "A stream that ends is started again by itself; those beside it go on.",
        own if deployment.software.is_custom else usual,
    ]
