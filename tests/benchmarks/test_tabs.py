"""Open pages that are played send what real ones would: what the answers before have set."""

from __future__ import annotations

import json

from benchmarks.service.tabs import Refresh, Shown

DRAWN = {"scheme": "light", "digests": ["a", "b", "c"]}


def test_a_page_knows_of_the_map_what_it_has_drawn() -> None:
    state = [{"id": "overview-known", "property": "data", "value": DRAWN}]
    refresh = Refresh("/", {}, {"inputs": [], "state": state})
    shown = Shown()
    shown.know([refresh])
    drawing = {"count": 3, "scheme": "light", "nodes": {}, "digests": {"1": "new"}}
    answer = {"overview-drawing": {"data": drawing}, "overview-note": {"children": "now"}}
    shown.learn(json.dumps({"response": answer}).encode())
    sent = json.loads(refresh.request("7", shown.at("7")).split(b"\r\n\r\n")[1])
    assert sent["state"][0]["value"] == {"scheme": "light", "digests": ["a", "new", "c"]}
    shown.learn(json.dumps({"response": {"overview-drawing": {"data": None}}}).encode())
    assert shown.at("8")["overview-known.data"]["digests"] == ["a", "new", "c"]
