"""Small profiles of a model and tables of throughputs, as people upload them."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

PLACEMENTS = (
    "placement,local_bsz,step_time,sync_time\n"
    "1,4,0.3,0.01\n1,32,0.5,0.01\n1,64,0.8,0.01\n"
    "2,4,0.4,0.1\n2,32,0.6,0.1\n3,4,0.4,0.1\n3,32,0.6,0.1\n4,4,0.4,0.1\n4,32,0.7,0.1\n"
    "44,4,0.7,0.4\n44,32,0.9,0.4\n"
)
SCALABILITY = (
    "num_nodes,num_replicas,local_bsz,step_time,sync_time\n"
    "6,24,4,1.0,0.6\n6,24,32,1.2,0.6\n6,24,57,1.5,0.6\n"
)
_EPOCH_COLUMNS = "progress,iteration,metric,grad_sqr,grad_var\n"
EPOCHS = f"{_EPOCH_COLUMNS}100,100,0.5,1.0,3.0\n190,190,0.6,1.0,3.0\n"


def profile_files(model: str = "bert", *, slower: float = 1.0) -> dict[str, str]:
    """One model on the GPU type t4, by name. `slower`: factor of its step times."""
    rows = [line.split(",") for line in PLACEMENTS.splitlines()[1:]]
    slow = "".join(
        f"{at},{batch},{float(step) * slower},{sync}\n" for at, batch, step, sync in rows
    )
    times = PLACEMENTS.partition("\n")[0] + "\n" + slow
    return {
        f"{model}/placements-aws.csv": times,
        f"{model}/scalability-aws.csv": SCALABILITY,
        f"{model}/validation-32.csv": EPOCHS,
        f"{model}/validation-64.csv": EPOCHS,
    }


def profiles(
    files: Mapping[str, str] | None = None, *, name: str = "measured", **more: Any
) -> dict[str, Any]:
    """Return the body that uploads them as texts."""
    given = profile_files() if files is None else files
    texts = [{"name": path, "text": text} for path, text in given.items()]
    return {"kind": "profiles", "name": name, "files": texts, **more}


def zipped(files: Mapping[str, str | bytes]) -> str:
    """Return a zip in base64."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return base64.b64encode(packed.getvalue()).decode()


def archived(files: Mapping[str, str | bytes], **more: Any) -> dict[str, Any]:
    """Return the body that uploads them as a zip."""
    return {"kind": "profiles", "name": "measured", "archive": zipped(files), **more}


def throughputs(model: str = "ResNet-18", *, rate: float = 10.0) -> str:
    """A table of a model on one and two V100."""
    rows = {f"('{model} (batch size 32)', {n})": {"null": rate * n} for n in (1, 2)}
    return json.dumps({"v100": rows})
