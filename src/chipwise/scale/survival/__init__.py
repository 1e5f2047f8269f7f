"""How long spot stays and stays away, learned while a job runs, and the best choice under it."""
