"""One file for each source of samples: `open_probe()` gives a probe, or says why there is none."""
