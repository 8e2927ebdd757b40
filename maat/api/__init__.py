"""The JSON of the REST API, declared once for routes, client, CLI and pages.

A request is a pydantic model, checked when it arrives. An answer is a TypedDict: the service builds
it, clients and pages read it unchecked. Clients must ignore unknown fields of an answer, so that
fields can be added. Times are RFC 3339 UTC, durations seconds, shares 0 to 1. No web framework and
no engine is imported here.
"""
