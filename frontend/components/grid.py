"""The table of every page: AG Grid with 32 px rows, themed by its theme function, in the colours of the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dash_ag_grid as dag

ROW_PIXELS = 32
THEME = {"function": "maatTheme(themeQuartz)"}

RIGHT = {"type": "rightAligned"}


def grid(
    grid_id: str,
    columns: Sequence[dict[str, Any]],
    *,
    height: str = "auto",
    options: dict[str, Any] | None = None,
    **more: Any,
) -> dag.AgGrid:
    """A grid; rows come as plain data, text is never read as markup."""
    style = {"height": None if height == "auto" else height, "width": "100%"}
    return dag.AgGrid(
        id=grid_id,
        columnDefs=list(columns),
        defaultColDef={
            "sortable": False,
            "sortingOrder": ["asc", "desc"],
            "resizable": True,
            "suppressHeaderMenuButton": True,
            "enableCellChangeFlash": True,
            "minWidth": 64,
        },
        dashGridOptions={
            "theme": THEME,
            "rowHeight": ROW_PIXELS,
            "headerHeight": ROW_PIXELS,
            "suppressCellFocus": False,
            "enableCellTextSelection": True,
            "cellFlashDuration": 500,
            "cellFadeDuration": 0,
            "animateRows": False,
            "tooltipShowDelay": 300,
            "localeText": {"noRowsToShow": "Nothing to show yet"},
            **({"domLayout": "autoHeight"} if height == "auto" else {}),
            **(options or {}),
        },
        dangerously_allow_code=False,
        style=style,
        **more,
    )
