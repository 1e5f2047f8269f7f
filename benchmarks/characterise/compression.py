"""Compresses text."""

import zlib

text = b"".join(b"%d times %d is %d\n" % (number, number % 97, number * (number % 97)) for number in range(60_000))
while True:
    zlib.compress(text, 9)
