"""The table of every page: AG Grid with 32 px rows in the colours of the page.

While rows load it looks like loading. A grid without rows is hidden while the element
`placeholder_id(grid_id)` holds the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import dash_ag_grid as dag
from dash import html

ROW_PIXELS = 32
ROWS_OUT_OF_SIGHT = 4  # drawn above and below those in sight
THEME = {"function": "maatTheme(themeQuartz)"}

Column: TypeAlias = dict[str, object]
RIGHT: Column = {"type": "rightAligned"}


def placeholder_id(grid_id: str) -> str:
    """Return the id of the element that replaces a grid with its empty or failed state."""
    return f"{grid_id}-told"


def grid(
    grid_id: str,
    columns: Sequence[Column],
    *,
    height: str = "auto",
    options: Mapping[str, object] | None = None,
    **more: object,
) -> html.Div:
    """A grid; rows come as plain data, text is never read as markup."""
    style = {"height": None if height == "auto" else height, "width": "100%"}
    drawn = dag.AgGrid(
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
            "rowBuffer": ROWS_OUT_OF_SIGHT,
            "headerHeight": ROW_PIXELS,
            "suppressCellFocus": False,
            "enableCellTextSelection": True,
            "cellFlashDuration": 500,
            "cellFadeDuration": 0,
            "animateRows": False,
            "tooltipShowDelay": 300,
            "loadingOverlayComponent": "MaatLoading",
            "suppressNoRowsOverlay": True,
            **({"domLayout": "autoHeight"} if height == "auto" else {}),
            **(options or {}),
        },
        dangerously_allow_code=False,
        style=style,
        **more,
    )
    return html.Div([html.Div(id=placeholder_id(grid_id), className="grid-told"), drawn])
