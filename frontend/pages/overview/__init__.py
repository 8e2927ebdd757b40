"""The overview: what is wrong, who waits and why, what the last round changed, what works."""

from frontend.pages.overview.page import add_demo_jobs, register

__all__ = ["add_demo_jobs", "register"]
