"""Sia's programme (section 3.4): which configuration each job gets, and why.

    programme.py      from a matrix and a value per pair to grants
    first_served.py   jobs that may not be preempted, before the programme
    by_tenant.py      solves it tenant by tenant, where quotas leave nothing to share
    reasons.py        why each job got what it got; limit_columns.py: what its limits took

The solvers, which know arrays only, are in solving/.
"""
