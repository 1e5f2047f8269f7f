"""Run pytest, and run the few tests that failed once more, alone.

Hundreds of tests start real servers, clusters and browsers beside each other. On a machine that gives half of
its processors to others one of them may wait too long. A test that fails again alone is broken; one that passes
alone is named in the last lines, so that it gets mended and is not forgotten.

    python tools/run_tests.py --forks 3 -m e2e     (options of pytest, no paths)
"""

from __future__ import annotations

import subprocess
import sys

import pytest

SHARING = ("-n", "--dist", "--forks")
MOST = 12  # more than this is no bad luck


class Failures:
    def __init__(self) -> None:
        self.tests: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and report.nodeid not in self.tests:
            self.tests.append(report.nodeid)


def alone(options: list[str]) -> list[str]:
    """The same options without those that share tests among processes."""
    kept, skip = [], False
    for option in options:
        if not skip and option not in SHARING:
            kept.append(option)
        skip = option in SHARING
    return kept


def main(options: list[str]) -> int:
    failures = Failures()
    code = int(pytest.main(options, plugins=[failures]))
    tests = failures.tests
    if code != pytest.ExitCode.TESTS_FAILED or not 0 < len(tests) <= MOST:
        return code
    print(f"\n{len(tests)} failed; each is run once more, alone", flush=True)
    again = [one for one in tests if subprocess.run([sys.executable, "-m", "pytest", *alone(options), one]).returncode]
    for one in tests:
        print(f"{'failed twice' if one in again else 'passed alone, mend it'}: {one}")
    return int(bool(again))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
