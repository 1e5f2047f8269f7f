"""Complex transforms of one long signal, there and back."""

import os

import numpy as np

N = 2**18
signal = np.random.default_rng(0).random(N) + 0j
for _ in range(int(os.environ.get("STEPS", 10**12))):
    spectrum = np.fft.fft(signal)
    signal = np.fft.ifft(spectrum)
