"""What a cloud tells its own machines before it takes them away: one file per cloud, each with `connect(base)`.

Every notice becomes the same: a reason, and the time until which all must be saved. Which cloud this is, is decided once, from
what the firmware says (`here`), so that nothing is ever asked on a machine that has nobody to ask. Kubernetes needs no file:
an eviction is a SIGTERM, which a supervisor and `chipwise.job` hear by themselves.
"""
