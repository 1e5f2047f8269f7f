"""Programs that serve a model where an engine is a library and has no program of its own. Each is started as a replica."""
