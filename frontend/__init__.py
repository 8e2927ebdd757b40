"""The pages of Maat: Dash on the service's own ASGI application.

Everything they show comes through the REST API.
"""

from maat.garbage import collect_less_often

collect_less_often()  # before all else is imported: looks for garbage took a seventh of that
