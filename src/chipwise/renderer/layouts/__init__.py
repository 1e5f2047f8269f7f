"""The files of several environments as one tree: a base with overlays (kustomize), or a chart with values (Helm)."""
