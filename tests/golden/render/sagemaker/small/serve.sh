#!/bin/sh
# SageMaker asks GET /ping and POST /invocations on port 8080: the program must answer them.
exec python serve.py
