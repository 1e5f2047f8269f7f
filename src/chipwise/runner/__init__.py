"""A plan as a job: what is wanted is recorded, what is seen is compared with it, and `step` decides. Nothing here acts."""
