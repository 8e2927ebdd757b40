"""One module or package per page.

`register(app, api)` gives it an address and its callbacks; `layout` shows before data comes.
"""

from frontend.pages import (
    cluster,
    job,
    jobs,
    measurements,
    not_found_404,
    overview,
    rounds,
    simulate,
    simulation,
    submit,
    sweep,
    sweeps,
)

PAGES = (
    overview,
    cluster,
    jobs,
    job,
    submit,
    rounds,
    simulate,
    simulation,
    sweeps,
    sweep,
    measurements,
    not_found_404,
)
