"""One file for each cause: `examine(evidence)` yields findings. A rule does not know another; `diagnosis` ranks them."""
