"""How fast, how large, how hot: estimates with their terms, intervals and provenance, over arrays of candidates."""
