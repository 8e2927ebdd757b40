"""Parts of a page that are not drawn before the reader can see them.

Half the fields of a form stand in parts that are folded or not chosen. Callbacks read and fill them
all the same: what they hold is in Dash's store, drawn or not.
"""

from __future__ import annotations

from dash.development.base_component import Component, ComponentType


class OnceSeen(Component):
    """Draws its children once its place is shown, and keeps them; assets/once_seen.js."""

    _namespace = "maat_parts"
    _type = "OnceSeen"

    def __init__(self, children: ComponentType) -> None:
        self._prop_names, self._base_nodes = ["children", "seen"], ["children"]
        self._children_props = self._valid_wildcard_attributes = []
        super().__init__(children=children)  # type: ignore[no-untyped-call]
