"""Commands: what a job runs instead of being played."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field
from typing_extensions import TypedDict

from maat.api.fields import Body
from maat.vocabulary import MOST_LOCALITY_PENALTY

MAX_WORDS = 1000
MAX_WORD = 32_000
MAX_VARIABLES = 200
MAX_STOP_SECONDS = 900.0
MAX_RETRIES = 100
_OURS, _PRELOAD = "MAAT_", "LD_PRELOAD"  # how names begin that no job may set
_NAME_OF_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]{0,199}$"
_PLACES = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE", "CUDA_VISIBLE_DEVICES"})


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("The text holds a NUL character: leave it out")
    return text


def _named(argv: list[str]) -> list[str]:
    if not argv[0]:
        raise ValueError("The first word, the programme, is empty: name it")
    return argv


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError("The path is not absolute: begin it with /")
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in path):
        raise ValueError(
            "The path holds a line break or another control character: give the path alone"
        )
    return path


def _variable(name: object) -> object:
    if not isinstance(name, str):
        return name
    if not re.match(_NAME_OF_VARIABLE, name):
        raise ValueError(
            "This cannot be the name of a variable: use letters, digits and _, at most 200, with "
            "no digit first, such as DATA_FOLDER"
        )
    if name.startswith(_OURS):
        raise ValueError(f"Maat sets variables that begin with {_OURS}: use others")
    if name.startswith(_PRELOAD):
        raise ValueError(
            f"{_PRELOAD} is not taken as a variable: let the command set it, such as "
            f'["env", "{_PRELOAD}=/lib/my.so", "python", "train.py"]'
        )
    if name in _PLACES:
        raise ValueError(f"Maat sets {name} for each process: leave it out")
    return name


Word = Annotated[str, Field(max_length=MAX_WORD), AfterValidator(_without_nul)]
Directory = Annotated[
    str,
    Field(min_length=1, max_length=4096),
    AfterValidator(_without_nul),
    AfterValidator(_absolute),
]
Variable = Annotated[str, Field(pattern=_NAME_OF_VARIABLE), BeforeValidator(_variable)]


def stem_of(argv: Sequence[str]) -> str:
    """Return a name for what a command trains: its script's, or else its programme's."""
    scripts = [word for word in argv[1:] if word.endswith((".py", ".sh"))]
    return PurePosixPath((scripts or list(argv))[0]).stem


Share = Annotated[float, Field(ge=0.0, le=1.0)]


class UtilisationBody(Body):
    """What a command was measured to use of its GPU, as shares 0-1 (PAL section III-A)."""

    dram: Share = Field(title="DRAM bandwidth used (0 to 1)", description="Of DRAM bandwidth.")
    functional_unit: Share = Field(
        title="Busiest functional unit (0 to 1)", description="Of the busiest functional unit."
    )


class CommandBody(Body):
    """A command. It is started as it stands, by no shell, once per replica."""

    argv: Annotated[
        list[Word], Field(min_length=1, max_length=MAX_WORDS), AfterValidator(_named)
    ] = Field(
        title="Command",
        description='The programme and its arguments, such as ["python", "train.py"].',
    )
    cwd: Directory = Field(title="Folder", description="The folder to start it in, on every node.")
    env: Annotated[dict[Variable, Word], Field(max_length=MAX_VARIABLES)] = Field(
        default_factory=dict, title="Environment", description="Environment variables."
    )
    secret_env: Annotated[dict[Variable, Word], Field(max_length=MAX_VARIABLES)] = Field(
        default_factory=dict,
        repr=False,
        title="Secrets",
        description="Environment variables that are stored encrypted and never shown again.",
    )
    stop_seconds: Annotated[float, Field(ge=1.0, le=MAX_STOP_SECONDS)] = Field(
        default=120.0,
        title="Time to save and end (s)",
        description="Time to save and end after SIGTERM, before it is ended by force.",
    )
    max_retries: Annotated[int, Field(ge=0, le=MAX_RETRIES)] = Field(
        default=3,
        title="Retries",
        description="Failures in a row, without a new checkpoint in between, that are retried.",
    )
    total_samples: Annotated[float, Field(gt=0, le=1e15)] | None = Field(
        default=None,
        title="Work (effective samples)",
        description="Effective samples of the whole training; default: the script says.",
    )
    profile: bool = Field(
        default=True,
        title="Measure it first, on one GPU of each type",
        description="Measure step times on one GPU of each type before it trains, "
        "if it adapts and a GPU is free; at most 20 s of steps each.",
    )
    utilisation: UtilisationBody | None = Field(
        default=None,
        title="Use of a GPU",
        description="Measured use of a GPU; jobs of like use share scores of GPU variability.",
    )
    locality_penalty: Annotated[float, Field(ge=1.0, le=MOST_LOCALITY_PENALTY)] | None = Field(
        default=None,
        title="Slowdown across nodes",
        description="Time of a step across nodes over one within a node, which the placer pal "
        "weighs; default: as measured, 1 until then.",
    )


class UtilisationOut(TypedDict):
    dram: float
    functional_unit: float


class CommandOut(TypedDict):
    """What a job runs. Of secrets, only the names are known."""

    argv: list[str]
    cwd: str
    env: dict[str, str]
    secret_names: list[str]
    stop_seconds: float
    max_retries: int
    total_samples: float | None
    profile: bool
    utilisation: UtilisationOut | None
    locality_penalty: float | None
