"""What accelerators and their host really do: samples in, findings out. Pure: probes in `adapters/probes` take the samples."""
