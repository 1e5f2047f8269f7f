"""Engines that serve models: what the plan chose, as the settings of each."""
