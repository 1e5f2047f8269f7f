"""Sayings put to the test: `bench` asks the planner, `judging` turns numbers into verdicts, the other modules are claims."""
