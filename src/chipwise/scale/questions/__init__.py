"""What is asked of the simulator: policies on a trace or on what is invented, with the answer of each."""
