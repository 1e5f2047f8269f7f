"""Compresses text."""

import os
import zlib

text = b"".join(b"%d times %d is %d\n" % (number, number % 97, number * (number % 97)) for number in range(60_000))
for _ in range(int(os.environ.get("STEPS", 10**12))):
    zlib.compress(text, 9)
