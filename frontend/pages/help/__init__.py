"""Help: the terms of the pages, each with a sentence, its formula, and where it is seen."""

from frontend.pages.help.page import layout, register

__all__ = ["layout", "register"]
