"""One process that watches over one attempt of a job on this machine.

It imports little, so that it is small and starts at once: there may be one for every GPU.
"""
