"""Policies that fail, each in its way, once a file named by FAIR_QUEUES_FAULT is there."""

import os
import sys
import time
from pathlib import Path

from fair_queues.longest import LongestFirst


class Fails(LongestFirst):
    """As LongestFirst while there is no fault."""

    def allocate(self, round_input):
        if Path(os.environ["FAIR_QUEUES_FAULT"]).exists():
            return self.fail(round_input)
        return super().allocate(round_input)

    def fail(self, round_input):
        raise NotImplementedError


class Raises(Fails):
    """Raises an error whose message names a job."""

    def fail(self, round_input):
        raise KeyError(round_input.jobs[0].id)


class Hangs(Fails):
    """Never answers."""

    def fail(self, round_input):
        while True:
            time.sleep(3600)


class Exits(Fails):
    """Ends the process that it runs in."""

    def fail(self, round_input):
        os._exit(3)


class Leaves(Fails):
    """Asks Python to end."""

    def fail(self, round_input):
        sys.exit("enough")


class Babbles(Fails):
    """Answers with something else than grants, and prints."""

    def fail(self, round_input):
        print("x" * 100_000)
        return 42


class Overfills(Fails):
    """Grants every job more GPUs than there are."""

    def fail(self, round_input):
        return {job.id: ("t4", 1000) for job in round_input.jobs}
