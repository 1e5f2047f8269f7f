"""The official clients of OpenAI and Hugging Face, unchanged, through the gateway to a stand-in of a model server.

They run in a Python of their own, which CHIPWISE_CLIENTS names (`python -m venv X; X/bin/pip install openai huggingface_hub`),
so that their dependencies do not meet ours.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from chipwise.serving.keys import Key, digest_of
from gateway_harness import running
from token_server import TokenServer

pytestmark = pytest.mark.e2e
SECRET = "a-long-secret-of-a-test-0123456789"

OPENAI = """
import sys, openai
client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key=sys.argv[2], max_retries=0)
messages = [{"role": "user", "content": "hello"}]
whole = client.chat.completions.create(model="tiny", messages=messages)
assert whole.choices[0].message.content == "tok " * 5 and whole.usage.completion_tokens == 5, whole
stream = list(client.chat.completions.create(model="tiny", messages=messages, stream=True))
assert "".join(c.choices[0].delta.content for c in stream if c.choices) == "tok " * 5, stream
assert client.completions.create(model="tiny", prompt="a").choices[0].text == "tok " * 5
assert len(list(client.completions.create(model="tiny", prompt="a", stream=True))) >= 5
assert client.embeddings.create(model="tiny", input="a", encoding_format="float").data[0].embedding == [0.5, -0.25]
assert [model.id for model in client.models.list()] == ["tiny"]
try:
    openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="wrong", max_retries=0).models.list()
    raise SystemExit("a wrong key was let in")
except openai.AuthenticationError as error:
    assert error.code == "invalid_api_key", error
with client.chat.completions.create(model="tiny", messages=messages, stream=True) as stream:
    next(iter(stream))
print("good")
"""
HUGGING_FACE = """
import sys
from huggingface_hub import InferenceClient
client = InferenceClient(base_url=sys.argv[1], token=sys.argv[2])
assert client.chat_completion([{"role": "user", "content": "hello"}]).choices[0].message.content == "tok " * 5
stream = client.chat_completion([{"role": "user", "content": "hello"}], stream=True)
assert "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices) == "tok " * 5
client = InferenceClient(model=sys.argv[1], token=sys.argv[2])
assert client.text_generation("hello", max_new_tokens=5) == "tok " * 5
assert list(client.text_generation("hello", max_new_tokens=5, stream=True)) == ["tok "] * 5
print("good")
"""


@pytest.mark.parametrize(("package", "program"), [("openai", OPENAI), ("huggingface_hub", HUGGING_FACE)])
def test_an_official_client_works_unchanged(package: str, program: str, tmp_path: Path) -> None:
    python = os.environ.get("CHIPWISE_CLIENTS", sys.executable)
    if subprocess.run([python, "-c", f"import {package}"], capture_output=True).returncode:
        pytest.skip(f"{package}: not installed")
    (tmp_path / "program.py").write_text(program)

    async def scene() -> None:
        async with running([TokenServer(tokens=5, interval_s=0.001)], keys=[Key("ann", digest_of(SECRET))]) as run:
            client = await asyncio.create_subprocess_exec(
                python,
                str(tmp_path / "program.py"),
                f"http://127.0.0.1:{run.port}",
                SECRET,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env={"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "0", "PATH": os.environ["PATH"]},
            )
            printed, _ = await asyncio.wait_for(client.communicate(), 90.0)
            assert client.returncode == 0, printed.decode()
            assert printed.decode().endswith("good\n")

    asyncio.run(scene())
