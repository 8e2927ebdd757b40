"""The request's way to the finder of remedies, which plays rounds that are not carried out."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from backend.jobs.remedies import RemedyFinder


async def get_finder(request: Request) -> RemedyFinder:
    finder: RemedyFinder = request.app.state.remedies
    return finder


FinderDep = Annotated[RemedyFinder, Depends(get_finder)]
