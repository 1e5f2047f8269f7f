"""Rules that spend money while something runs: spot with deadlines, scaling, queues. Pure decisions behind small contracts."""
