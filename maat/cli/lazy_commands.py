"""Commands that are imported when they run.

Listing jobs must not wait until the simulator is loaded. Knows no command.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand

EXIT_CODES = (
    "Exit codes: 0 fine, 1 failed or not so, 2 bad input or refused, 130 interrupted. "
    "docs/using.md says more."
)
_WORDS = "maat.words"


@dataclass(frozen=True)
class Command:
    """An entry of the list of commands.

    `where`: `module:function`; `summary`: the first line of the function's docstring;
    `takes_words`: what follows `--` is no argument of it, but a command line.
    """

    name: str
    summary: str
    where: str
    takes_words: bool = False

    def function(self) -> Callable[..., None]:
        module, _, name = self.where.partition(":")
        found: Callable[..., None] = getattr(import_module(module), name)
        return found


class _WithWords(TyperCommand):
    """A command that keeps what follows `--` apart."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--" in args:
            dashes = args.index("--")
            ctx.meta[_WORDS], args = args[dashes + 1 :], args[:dashes]
        return super().parse_args(ctx, args)


def words_after_dashes(context: typer.Context) -> list[str] | None:
    """Return what follows `--`; None if there is none."""
    found: list[str] | None = context.meta.get(_WORDS)
    return found


def add_lazily(app: typer.Typer, command: Command) -> None:
    """List the command in `app` by name and summary, without its options.

    The command replaces this entry when it is called or its help is requested.
    """

    class Lazy(TyperCommand):
        def make_context(
            self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
        ) -> Any:
            alone = typer.Typer(
                add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich"
            )
            kind = _WithWords if command.takes_words else TyperCommand
            alone.command(command.name, cls=kind, epilog=EXIT_CODES)(command.function())
            return typer.main.get_command(alone).make_context(
                info_name, args, parent=parent, **extra
            )

    @app.command(command.name, help=command.summary, cls=Lazy)
    def listed() -> None:
        """Never called: the context is the command's own."""
