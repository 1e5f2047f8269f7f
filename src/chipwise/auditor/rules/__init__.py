"""One file per rule. The file's name is the rule's; it defines `check(sources) -> Iterator[Finding]` and `ABOUT`."""
