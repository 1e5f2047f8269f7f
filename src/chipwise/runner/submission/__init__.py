"""What a command or a workload becomes as a job: what was asked for, where it may run, and what that will take."""
