"""No module decides by searching a sentence or a note for words: reasons, evidence and places are typed fields.

Read from the syntax tree: membership of a literal with a space in a string, membership of anything in a field that holds a
sentence, and prefixes, suffixes or separators with a space. `Choice.split` is a mapping, and its keys have spaces.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "chipwise"
PACKAGES = sorted(
    path.name
    for path in SOURCE.iterdir()
    if (path.is_dir() and path.name not in ("data", "__pycache__")) or path.suffix == ".py"
)
SENTENCES = {"why", "told", "reason", "notes", "remedy", "how_much", "verdict", "basis", "assumed", "refused", "missed"}
METHODS = {"startswith", "endswith", "partition", "rpartition", "find", "index", "removeprefix", "removesuffix"}
MAPPINGS = {"split"}

# What parses text of others, or shortens text for a reader without deciding anything; nothing is to be added for reasons.
PARSED = {
    ("runner/bench/rows.py", "model.partition(' (')"),
    ("money/serverless.py", "name.startswith('RTX PRO')"),  # a chip's name
    ("planner/quotas.py", "row.families.partition(' (')"),
    ("planner/explain/row_words.py", "unit.startswith('million ')"),  # units of a price
    ("planner/explain/row_words.py", "choice.unit.startswith('million ')"),
    ("renderer/joining.py", "row.requires.startswith('NVIDIA driver')"),  # a column of the table of software
    ("catalog/load.py", "device.device.partition(' (')"),  # a device's name
    ("perf/family_inference.py", "vendor.endswith(' gpu')"),  # a key of two parts
    ("perf/family_inference.py", "pair.endswith('|16 bit')"),
    ("adapters/feeds/azure.py", "'Low Priority' in text['skuName']"),  # columns of a provider's prices
    ("adapters/wire/gcpskus.py", "'Spot Preemptible' in description"),
    ("adapters/engines/kubernetes/story.py", "'unbound immediate PersistentVolumeClaims' in message"),  # events of a cluster
    ("adapters/graphs/walking.py", "note not in self.notes"),  # each is told once
    ("auditor/auditing.py", "text.lstrip().upper().startswith('FROM ')"),  # files that are audited
    ("auditor/auditing.py", "line.startswith(('resource ', 'provider ', 'variable ', 'terraform {', 'data ', 'module '))"),
}
# Whole files that translate errors of other programs, or read what the system and published tables print: the doors.
DOORS = {
    "adapters/engines/kubernetes/connection.py",
    "adapters/profiling/device.py",
    "adapters/stores/record/sqlite.py",
    "adapters/this_machine.py",
    "files/source.py",
    "perf/published_inference.py",
    "perf/published_training.py",
    "perf/published_vision.py",
}


def searched(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(isinstance(one, ast.In | ast.NotIn) for one in node.ops):
            place = node.comparators[0]
            named = place.func if isinstance(place, ast.Call) else place
            field = named.attr if isinstance(named, ast.Attribute) else named.id if isinstance(named, ast.Name) else ""
            words = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str) and " " in node.left.value.strip()
            of_text = isinstance(node.left, ast.Constant | ast.Name) and isinstance(named, ast.Attribute) and field in SENTENCES
            if (words and field not in MAPPINGS) or of_text:
                yield node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS and node.args:
            texts = [
                one.value for one in ast.walk(node.args[0]) if isinstance(one, ast.Constant) and isinstance(one.value, str)
            ]
            spoken = any(" " in text and any(sign.isalpha() or sign == "(" for sign in text) for text in texts)
            deciding = node.func.attr not in ("removeprefix", "removesuffix")
            if spoken and deciding:
                yield node


def findings(package: str) -> list[str]:
    found = []
    whole = SOURCE / package
    for path in sorted(whole.rglob("*.py") if whole.is_dir() else [whole]):
        name = path.relative_to(SOURCE).as_posix()
        if name in DOORS:
            continue
        for node in searched(ast.parse(path.read_text(encoding="utf-8"))):
            text = ast.unparse(node)
            if (name, text) not in PARSED:
                found.append(f"{name}:{node.lineno}: {text}")
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_no_sentence_is_searched_for_words(package: str) -> None:
    assert findings(package) == []


@pytest.mark.parametrize(
    "text",
    [
        'slow = " are allowed" in sentence',
        'slow = "deadline" in rows.verdict(other)',
        "slow = word in loss.why",
        'slow = loss.text.startswith("no offer within")',
        'chip = one.chip.partition(" (")[0]',
    ],
)
def test_a_search_is_seen(text: str) -> None:
    assert list(searched(ast.parse(text)))


@pytest.mark.parametrize("text", ['held = "seats a chip" in one.split', 'flag = "tp" in settings', 'name.startswith("aws")'])
def test_mappings_and_names_are_not_sentences(text: str) -> None:
    assert not list(searched(ast.parse(text)))
