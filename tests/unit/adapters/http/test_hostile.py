"""Clients that mean harm or know no HTTP: refused or cut within bounds of memory and time, and others are served meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from chipwise.adapters.http.framing import ChunkedBody
from chipwise.adapters.http.heads import BadMessage, read_request, read_response
from chipwise.serving.settings import GatewaySettings, SizeLimits, Timeouts
from gateway_harness import CHAT, STREAM, post, read_answer, running, status
from token_server import TokenServer

PATH = "/v1/chat/completions"
LINE = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"
BODY = b"content-length: %d\r\n\r\n%b" % (len(CHAT), CHAT)

MALFORMED = {
    "no http": b"hello\r\n\r\n",
    "old version": b"GET / HTTP/0.9\r\n\r\n",
    "new version": b"POST / HTTP/2.0\r\nhost: x\r\n\r\n",
    "lower case method": b"get /health HTTP/1.1\r\nhost: x\r\n\r\n",
    "absolute target": b"GET http://evil/health HTTP/1.1\r\nhost: x\r\n\r\n",
    "target with a blank": b"GET /health /x HTTP/1.1\r\nhost: x\r\n\r\n",
    "no host": b"GET /health HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /health HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
    "bare LF": b"GET /health HTTP/1.1\nhost: x\r\n\r\n",
    "bare CR": b"GET /health HTTP/1.1\r\nhost: x\r\na: b\rc: d\r\n\r\n",
    "NUL": b"GET /health HTTP/1.1\r\nhost: x\r\na: \0\r\n\r\n",
    "folded": b"GET /health HTTP/1.1\r\nhost: x\r\na: b\r\n c\r\n\r\n",
    "blank before colon": LINE + b"content-length : 5\r\n\r\nhello",
    "no colon": LINE + b"content-length\r\n\r\n",
    "two lengths": LINE + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
    "equal lengths": LINE + b"content-length: 5\r\ncontent-length: 5\r\n\r\nhello",
    "list of lengths": LINE + b"content-length: 5, 5\r\n\r\nhello",
    "signed length": LINE + b"content-length: +5\r\n\r\nhello",
    "negative length": LINE + b"content-length: -5\r\n\r\nhello",
    "hexadecimal length": LINE + b"content-length: 0x5\r\n\r\nhello",
    "huge length": LINE + b"content-length: 99999999999999999999\r\n\r\nhello",
    "empty length": LINE + b"content-length:\r\n\r\nhello",
    "length and chunks": LINE + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked twice": LINE + b"transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "other coding": LINE + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "hidden coding": LINE + b"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    "coding with a tab": LINE + b"transfer-encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "chunk size signed": LINE + b"transfer-encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n",
    "chunk size with 0x": LINE + b"transfer-encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n",
    "chunk size with _": LINE + b"transfer-encoding: chunked\r\n\r\n1_0\r\nhello\r\n0\r\n\r\n",
    "chunk size empty": LINE + b"transfer-encoding: chunked\r\n\r\n\r\nhello\r\n0\r\n\r\n",
    "chunk ends by LF": LINE + b"transfer-encoding: chunked\r\n\r\n5\nhello\n0\n\n" + b"x" * 1100,
    "chunk too long": LINE + b"transfer-encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n",
    "chunk size huge": LINE + b"transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\nhello\r\n0\r\n\r\n",
    "extension with LF": LINE + b"transfer-encoding: chunked\r\n\r\n5;a=\nb\r\nhello\r\n0\r\n\r\n",
    "unknown expectation": LINE + b"expect: magic\r\n" + BODY,
    "two authorizations": LINE + b"authorization: a\r\nauthorization: b\r\n" + BODY,
    "long head": LINE + b"a: " + b"x" * 20_000,
    "many headers": LINE + b"a: b\r\n" * 200 + BODY,
    "long target": b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\nhost: x\r\n\r\n",
    "bytes of TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 50 + b"\r\n\r\n",
}


def test_malformed_requests_are_refused_and_nothing_reaches_a_replica() -> None:
    async def scene() -> None:
        server = TokenServer()
        server.seen.keeps = True
        async with running([server]) as run:
            for name, data in MALFORMED.items():
                answer = await run.send(data)
                assert 400 <= status(answer) < 600, name
                assert answer.count(b"HTTP/1.1 ") == 1, name  # bytes that follow are no second request
                assert b"connection: close" in answer, name
            assert server.seen.requests == []
            assert run.gateway.state.body_bytes == 0
            assert status(await run.send(post(PATH, CHAT))) == 200

    asyncio.run(scene())


@pytest.mark.parametrize(
    "body",
    [
        b"\xff\xfe",
        b"{",
        b"[]",
        b"null",
        b'"a"',
        b"{}{}",
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"1" * 10_000,
        b"\xef\xbb\xbf{}",
        b"",
    ],
    ids=lambda body: repr(body[:8]),
)
def test_a_body_that_is_no_json_object_is_refused(body: bytes) -> None:
    async def scene() -> None:
        server = TokenServer()
        server.seen.keeps = True
        async with running([server]) as run:
            assert status(await run.send(post(PATH, body))) == 400
            assert server.seen.requests == []

    asyncio.run(scene())


@pytest.mark.parametrize(
    "body",
    [
        b'{"messages":5,"max_tokens":"x","n":-1,"model":[],"user":{}}',
        b'{"messages":[5,{"content":5},{"content":[5,{"text":5}]}],"max_tokens":1e400,"n":9999999999}',
        b'{"messages":[{"content":"\\ud800"}],"user":"\\udfff","max_tokens":-1}',
        b'{"messages":[],"max_tokens":NaN}',
    ],
)
def test_odd_fields_are_left_to_the_replica(body: bytes) -> None:
    async def scene() -> None:
        async with running([TokenServer()], policy="session-affinity") as run:
            assert status(await run.send(post(PATH, body))) == 200

    asyncio.run(scene())


def test_bodies_are_bounded_however_they_come() -> None:
    async def scene() -> None:
        settings = GatewaySettings(sizes=SizeLimits(body_bytes=1000))
        async with running([TokenServer()], settings) as run:
            assert status(await run.send(post(PATH, b"x" * 1001))) == 413
            endless = LINE + b"transfer-encoding: chunked\r\n\r\n" + b"64\r\n" + b"x" * 100 + b"\r\n"
            assert status(await run.send(endless + (b"64\r\n" + b"x" * 100 + b"\r\n") * 20)) == 413
            assert run.gateway.state.body_bytes == 0

    asyncio.run(scene())


def test_slow_requests_are_ended() -> None:
    async def scene() -> None:
        settings = GatewaySettings(timeouts=Timeouts(head_s=0.1, body_s=0.1, idle_s=0.1))
        async with running([TokenServer()], settings) as run:
            head, body, idle = await asyncio.gather(
                run.send(LINE[:20]), run.send(LINE + b"content-length: 10\r\n\r\n12"), run.send(b"")
            )
            assert (status(head), status(body), idle) == (408, 408, b"")

    asyncio.run(scene())


def test_idle_connections_make_room_for_new_ones() -> None:
    async def scene() -> None:
        settings = GatewaySettings(sizes=SizeLimits(connections=20))
        async with running([TokenServer(tokens=50, interval_s=0.002)], settings) as run:
            stream = asyncio.create_task(run.send(post(PATH, STREAM)))
            await asyncio.sleep(0.02)
            crowd = [await asyncio.open_connection("127.0.0.1", run.port) for _ in range(100)]
            for _, writer in crowd[::2]:
                writer.write(LINE)  # half of them begin a request and never end it
            assert status(await run.send(post(PATH, CHAT))) == 200
            assert run.gateway.state.connections <= 20
            assert (await stream).endswith(b"0\r\n\r\n")
            for _, writer in crowd:
                writer.close()

    asyncio.run(scene())


def test_an_answer_that_nobody_reads_stops_its_replica_and_ends() -> None:
    async def scene() -> None:
        settings = GatewaySettings(sizes=SizeLimits(unread_bytes=10_000), timeouts=Timeouts(unread_s=0.2))
        server = TokenServer(tokens=100_000)  # 15 MB at once, more than the sockets hold
        async with running([server], settings) as run:
            _, writer = await asyncio.open_connection("127.0.0.1", run.port, limit=1000)
            writer.write(post(PATH, STREAM))
            await asyncio.sleep(0.1)
            async with asyncio.timeout(10.0):
                while run.gateway.state.pending:
                    await asyncio.sleep(0.05)
            run.gateway.state.log.flush()
            assert b"client_does_not_read" in run.log
            writer.close()

    asyncio.run(scene())


def test_requests_behind_one_another_are_bounded() -> None:
    async def scene() -> None:
        settings = GatewaySettings(sizes=SizeLimits(pipelined_bytes=1000))
        async with running([TokenServer(tokens=5, interval_s=0.005)], settings) as run:
            reader, writer = await asyncio.open_connection("127.0.0.1", run.port)
            writer.write(post(PATH, STREAM, closes=False) * 50)
            for _ in range(50):
                assert status(await asyncio.wait_for(read_answer(reader), 5)) == 200
            writer.close()

    asyncio.run(scene())


@pytest.mark.parametrize("cut", [1, 2, 3, 5, 7])
def test_chunks_end_at_the_same_byte_however_they_are_cut(cut: int) -> None:
    data = b"5\r\nhello\r\n6;x=y\r\n world\r\n0\r\na: b\r\n\r\nNEXT"
    body, content, position = ChunkedBody(), b"", 0
    while not body.done:
        piece = data[position : position + cut]
        end = body.feed(piece)
        content += b"".join(piece[start:stop] for start, stop in body.spans)
        position += end
    assert content == b"hello world"
    assert data[position:] == b"NEXT"


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip",
        b"HTTP/1.1 200\nOK",
        b"ICY 200 OK",
    ],
)
def test_answers_that_could_be_read_in_two_ways_are_refused_too(head: bytes) -> None:
    with pytest.raises(BadMessage):
        read_response(head)


def test_only_one_way_to_read_a_head_is_accepted_by_a_known_parser_too() -> None:
    """llhttp, which many servers use, reads what we accept in the same way."""
    httptools = pytest.importorskip("httptools", reason="httptools: not installed")

    class Seen:
        def on_message_complete(self) -> None:
            pass

    for data in MALFORMED.values():
        head = data.partition(b"\r\n\r\n")[0]
        try:
            ours = read_request(head)
        except BadMessage:
            continue
        theirs = httptools.HttpRequestParser(Seen())
        theirs.feed_data(head + b"\r\n\r\n")
        assert theirs.get_method().decode() == ours.line.method
