"""Routes of previews of rounds."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.clusters.interference import with_measurements
from backend.clusters.repository import get_cluster
from backend.idempotency import Answer, KeyHeader, Once, answer_prepared
from backend.operations.models import Operation
from backend.previews.resources import show_preview
from backend.previews.service import PreparedPreview, get_preview, prepare_preview, store_preview
from backend.web.dependencies import QueueDep, ReadingDep, SessionDep, SettingsDep
from backend.web.strict_json import StrictRoute
from maat.api.previews import RoundPreviewBody, RoundPreviewOut

router = APIRouter(
    prefix="/clusters/{cluster_id}/previews", tags=["clusters"], route_class=StrictRoute
)

Writer = Annotated[Principal, Depends(require(Permission.CLUSTERS_WRITE))]


@router.post(
    "",
    operation_id="previewRound",
    status_code=202,
    response_model=RoundPreviewOut,
)
def preview_round(
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
    queue: QueueDep,
    principal: Writer,
    cluster_id: str,
    body: RoundPreviewBody,
    key: KeyHeader = None,
) -> Response:
    """Play the next round twice, as it stands and after a change, and carry out neither.

    The same checks as for a change of the cluster. Read the preview at its address until it has
    ended; cancel it by its operation.
    """

    def answer(prepared: PreparedPreview) -> Answer:
        preview, operation = store_preview(session, principal, prepared, queue)
        where = f"/api/v1/clusters/{prepared.cluster_id}/previews/{preview.id}"
        shown = show_preview(session, principal, preview, operation)
        return Answer(202, shown, {"Location": where, "Retry-After": "1"})

    with reading() as before:
        route = f"POST /clusters/{get_cluster(before, cluster_id).id}/previews"
    return answer_prepared(
        reading,
        session,
        Once(principal.user_id, route, key, body),
        settings,
        prepare=lambda found: prepare_preview(
            found, cluster_id, with_measurements(found, principal, body)
        ),
        answer=answer,
    )


@router.get("/{preview_id}", operation_id="getRoundPreview")
def read_preview(
    session: SessionDep, principal: Writer, cluster_id: str, preview_id: str
) -> RoundPreviewOut:
    """The two rounds side by side, once they were played. Previews are kept for a day."""
    preview = get_preview(session, principal, cluster_id, preview_id)
    operation = session.get_one(Operation, preview.operation_id)
    return show_preview(session, principal, preview, operation)
