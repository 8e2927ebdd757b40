"""One module or package per page.

`register(app, api)` gives it an address and its callbacks; `layout` shows before data comes.
"""

from frontend.pages import (
    account,
    admin,
    calibration,
    cluster,
    experiment,
    experiments,
    fairness,
    help,
    job,
    jobs,
    measurements,
    not_found_404,
    overview,
    reports,
    rounds,
    sign_in,
    simulate,
    simulation,
    submit,
    sweep,
    sweeps,
    usage,
)

PAGES = (
    overview,
    cluster,
    jobs,
    job,
    submit,
    rounds,
    calibration,
    usage,
    fairness,
    simulate,
    simulation,
    sweeps,
    sweep,
    experiments,
    experiment,
    measurements,
    reports,
    account,
    admin,
    help,
    sign_in,
    not_found_404,
)
