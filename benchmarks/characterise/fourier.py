"""Complex transforms of one long signal, there and back."""

import numpy as np

N = 2**18
signal = np.random.default_rng(0).random(N) + 0j
while True:
    spectrum = np.fft.fft(signal)
    signal = np.fft.ifft(spectrum)
