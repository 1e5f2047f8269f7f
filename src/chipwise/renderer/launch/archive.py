"""An archive of video in items, so that no two machines write one file and a lost machine costs one item, not all that it did.

Sources lie in a folder, below it as they like. A small program (`programs/archive.sh`) takes those of its part by their place
in the sorted list: which part takes an item follows from the numbers of both, so nobody has to ask anybody. Results of an item
get a folder of its own; they are written under temporary names and renamed when all are whole, so that an item whose results
are there is skipped by whoever comes again.
"""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.renderer.program_files import inline, program
from chipwise.renderer.quoting import shell

SOURCES, RESULTS = "/data/in", "/data/out"
PROGRAM = inline(program("archive.sh"))
_SOURCE, _OUT = "/data/in.ts", "/data/out-"  # in a command of one stream: its one source, and its targets by number


def archive_words(command: Sequence[str]) -> tuple[str, ...]:
    """The command of a machine that finds its number in PART and PARTS, from that of one stream."""
    outputs = [word for word in command if word.startswith(_OUT)]
    endings = {word.rpartition(".")[2] for word in outputs}
    mixed = len(endings) != 1
    ending = "mkv" if mixed else endings.pop()  # Matroska has a place for all codecs
    words = [command[0], "-y", *("matroska" if mixed and word == "mpegts" else word for word in command[1:])]
    placed = " ".join(_placed(word) for word in words)
    return ("sh", "-c", PROGRAM, "archive", SOURCES, RESULTS, str(len(outputs)), ending, "sh", "-c", f"exec {placed}", "item")


def in_archive(command: Sequence[str]) -> bool:
    return tuple(command[2:4]) == (PROGRAM, "archive")


REASON = (
    f"Items are the files below {SOURCES}, dealt out like cards by their place in the sorted list; results are in",
    f"{RESULTS}/ITEM/NUMBER. What has its results is skipped: a lost machine costs the item in work.",
)


def _placed(word: str) -> str:
    if word == _SOURCE:
        return '"$SOURCE"'
    number = word.removeprefix(_OUT).partition(".")[0]
    return f'"${{{int(number) + 1}}}"' if word.startswith(_OUT) and number.isdigit() else shell([word])
