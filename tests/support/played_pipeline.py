"""A pipeline that the simulated engine plays: two jobs and a service that goes on."""

from __future__ import annotations

PIPELINE = """\
kind: pipeline
name: made
stages:
  - {kind: hpc, name: fetch, steps: 300, flop_per_step: 2TFLOP, bytes_per_step: 100GB}
  - {kind: hpc, name: solve, steps: 900, flop_per_step: 20TFLOP, bytes_per_step: 100GB}
  - {kind: serve, name: serve, model: bert-base-uncased, arrival: {rate: 5 req/s}, input_tokens: 40}
hand_offs:
  - {from: fetch, to: solve, size: 1GB}
  - {from: solve, to: serve, size: 1GB}
"""
