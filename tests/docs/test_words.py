"""Texts that people read use ordinary technical English: words that were replaced once do not come back.

Read are string literals of the package (help of commands included; other docstrings, and programs that are written out, are
not) and the pages of the documentation, except code and what commands print there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "chipwise"
PAGES = sorted([ROOT / "README.md", ROOT / "SCOPE.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])
BANNED = {  # a pattern, and what to write
    r"mend(?:s|ed|ing)?": "fix",
    r"reckon(?:s|ed|ing)?": "compute",
    r"dear(?:er|est)?": "(more, most) expensive",
    r"promise[sd]?": "commitment",
    r"told|tells? (?:of|its)": "shown, reported, given",
    r"want of": "lack of, out of",
    r"making of (?:chips|hosts)": "embodied carbon",
    r"takes? \$[\d{,.]+|would take \$": "costs $",
    r"passed over": "skipped",
    r"one's own": "your own",
    r"stands? alone": "cannot be combined",
    r"nobody (?:we read|states|knows|says|sells|counted|measured|ever)": "not published, not known",
    r"held against": "compared with, ignored",
    r"says? nothing to": "does not apply to",
    r"anew": "again",
    r"whoever": "who, everyone who",
    r"somebody": "a person, another program",
    r"handed on": "passed on, moved",
    r"cannot be\.": "is not possible.",
    r"lies (?:in|on|where|at|there)": "is in, is on",
    r"blot(?:s|ted|ting)?(?: \w+)? out": "redact",
    r"job'?s story|stor(?:y|ies) of (?:a|the) job": "history",
    r"(?:go(?:es)?|brought) along": "is uploaded, is included",
    r"ask(?:s|ed)? of": "requested from, read from",
    r"who (?:came|comes) first": "the oldest",
    r"as whom": "the user that it runs as",
    r"goes? away": "is removed, is reclaimed",
    r"(?:takes?|took|wants?) (?:a|the)(?: spot)? machines? back": "reclaim",
    r"without a word": "without notice, without a message",
    r"our own mistake": "a bug in chipwise",
    r"(?:bad )?luck|clean slate": "chance; reset",
    r"heed(?:s|ed|ing)?": "react to, respect",
    r"whence": "where from",
    r"for ever": "forever, indefinitely",
    r"will not do": "is not valid",
    r"hand(?:s|ed)? in": "pass, submit",
    r"(?:to|cannot) be had": "available",
    r"stands? at the edge": "is an edge device",
    r"stands? in (?:one|different) (?:region|zone)s?": "is in",
    r"all the same": "anyway, still",
    r"in vain": "forever, without effect",
    r"nobody's": "no ...",
    r"(?:for|by) who (?:runs?|owns?|wants?)": "for the administrator, by their owners",
    r"is of (?:AWS|Azure|Google)": "runs on AWS only",
    r"files are of": "files are for",
    r"is borne": "is tolerated",
    r"go(?:es)? (?:back )?by themselves": "automatically",
    r"something else than": "another machine than",
    r"what moves it|all that moves": "what changes the result",
    r"cheapest lasting|, lasting": "cheapest durable",
    r"left out are": "... were left out",
}
PATTERN = re.compile(rf"\b(?:{'|'.join(BANNED)})(?!\w)", re.IGNORECASE)
PROGRAM_LINES = 4  # a literal of more lines is a program or a file for another tool
DOCSTRING = re.compile(r'^ *""".*?"""$', re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r"(?:^ *|  )# .*$", re.MULTILINE)
NAMES = frozenset({"SOMEBODY"})  # placeholders that a reader replaces


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Literals that people read, with their lines."""
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any("click" in ast.unparse(one) for one in node.decorator_list):
            yield node.lineno, ast.get_docstring(node) or ""
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in skipped:
            continue
        if node.value.count("\n") < PROGRAM_LINES and not node.value.isidentifier():
            yield node.lineno, node.value


def complaints(text: str) -> list[str]:
    return [match[0] for match in PATTERN.finditer(text) if match[0] not in NAMES]


def suspect(source: str) -> bool:
    """Whether a banned word stands in a file outside comments and docstrings: only then it is parsed, which takes longer."""
    if "click" not in source:  # whose commands show theirs as help
        source = DOCSTRING.sub("", source)
    joined = re.sub(r"[\"']\s*[a-z]{0,2}[\"']", "", COMMENT.sub("", source))  # "want " "of" is one text
    return bool(PATTERN.search(re.sub(r"\\[a-z]", " ", joined)))


def test_messages_and_help_are_in_plain_words() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {words}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if suspect(source := path.read_text(encoding="utf-8"))
        for line, text in texts(ast.parse(source))
        if (words := complaints(text))
    ]
    assert not found, "\n".join(found)


def test_pages_are_in_plain_words() -> None:
    found = []
    for page in PAGES:
        text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        where = page.relative_to(ROOT)
        found += [f"{where}: {words}: {line[:100]}" for line in text.splitlines() if (words := complaints(line))]
    assert not found, "\n".join(found)


def test_a_banned_word_is_found() -> None:
    source = '"""Told."""\nraise ValueError("Mend it, " + f"which takes ${cost} and is dearer.")'
    tree = ast.parse(source)
    assert suspect(source)
    assert suspect('x = "for want "\n    f"of it"')
    assert suspect('x = "\\nmend it"')
    assert [words for _, text in texts(tree) for words in complaints(text)] == ["Mend", "dearer"]
    assert complaints("it takes $28,374") == ["takes $28,374"]
