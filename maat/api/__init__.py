"""The JSON of the REST API: one declaration for routes, client, command line and pages.

What is sent is a pydantic model, checked when it arrives. What is answered is a TypedDict: the
service builds it, clients and pages read it as it is. Unknown fields of an answer are to be
ignored, so that a client outlives additions. Times are RFC 3339 UTC, durations seconds, shares 0
to 1. No web framework and no engine is imported here.
"""
