"""Commands as words with lines, and the numbers that their flags give."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chipwise.auditor.source import Located, LocatedList, line_of, whole_number

TENSOR = ("--tensor-parallel-size", "--tensor_parallel_size", "-tp", "--tp", "--tp-size", "--num-shard", "--num_shard")
PIPELINE = ("--pipeline-parallel-size", "--pipeline_parallel_size", "-pp", "--pp", "--pp-size")
DATA = ("--data-parallel-size", "--data_parallel_size", "-dp")
PROCESSES = ("--nproc-per-node", "--nproc_per_node", "--num_gpus", "--num-gpus", "trainer.devices")
RANKS = ("--num_processes", "--num-processes")  # of Accelerate, on all machines together
NODES = ("--nnodes", "--num_machines", "--num-machines", "--num_nodes", "--num-nodes", "trainer.num_nodes")
MEGATRON = (  # what one copy of a model is split over; the rest of the ranks are copies
    ("--tensor-model-parallel-size",),
    ("--pipeline-model-parallel-size",),
    ("--context-parallel-size",),
)
PORT = ("--port", "--http-port", "--http_port")
_FLAG_C = re.compile(r"-[a-z]*c")


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Number:
    value: int
    line: int


def words_of_container(container: Located) -> list[Word]:
    """Its command and arguments; what is given to a shell as one text is taken apart."""
    parts: list[Word] = []
    for key in ("command", "args"):
        parts += _items(container.get(key), line_of(container, key))
    words: list[Word] = []
    for index, part in enumerate(parts):
        shell = index and _FLAG_C.fullmatch(parts[index - 1].text) and " " in part.text
        words += words_of_text(part.text, part.line) if shell else [part]
    return words


def _items(value: Any, line: int) -> list[Word]:
    if isinstance(value, str):  # not Kubernetes; Compose and others
        return words_of_text(value, line)
    lines = value.lines if isinstance(value, LocatedList) else []
    items = value if isinstance(value, list) else []
    return [Word(str(item), lines[index] if index < len(lines) else line) for index, item in enumerate(items)]


def words_of_text(text: str, line: int) -> list[Word]:
    """A script; the text of a block begins on the line after its sign."""
    if "\n" not in text.rstrip("\n"):
        return [Word(word, line + text.endswith("\n")) for word in _split(text)]
    words: list[Word] = []
    number, part = line + 1, ""
    for index, row in enumerate(text.split("\n")):
        if not part:
            number = line + 1 + index
        part += row
        if part.endswith("\\"):
            part = part[:-1] + " "
            continue
        words += [Word(word, number) for word in _split(part)]
        part = ""
    return words


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line.replace("\\\n", " "), comments=True)
    except ValueError:  # a quote without its end
        return line.split()


def value_of(words: Sequence[Word], names: Sequence[str]) -> Word | None:
    """What the last of these flags is given, as `--flag value` or `--flag=value`."""
    given_word: Word | None = None
    for index, word in enumerate(words):
        flag, equals, value = word.text.partition("=")
        if flag in names:
            if equals:
                given_word = Word(value.strip("\"'"), word.line)
            elif index + 1 < len(words):
                given_word = Word(words[index + 1].text, words[index + 1].line)
    return given_word


def number_of(words: Sequence[Word], names: Sequence[str]) -> Number | None:
    """The same as a whole number above zero; a variable is none."""
    word = value_of(words, names)
    count = whole_number(word.text) if word else 0
    return Number(count, word.line) if word and count else None
