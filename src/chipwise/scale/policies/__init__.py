"""One file for each rule; the contracts that they keep stand in `scale`."""
