"""Files that hold a network's graph; one module per format."""
