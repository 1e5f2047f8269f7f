"""One file per serving engine. The file's name is the engine's, with an underscore for a dot or a hyphen; what it defines is
`serving/engine.ServingEngine`."""
