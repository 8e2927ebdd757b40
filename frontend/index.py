"""The HTML that every page starts from.

Its script runs before the first paint. It sets the colour scheme and counts callbacks in flight, so
that the heartbeat queues no refresh behind an unfinished callback, and asks for nothing that has
come and is about to be drawn. It repeats the session's CSRF token with every callback, lets
assets/away.js watch whether an answer comes, and gives Dash the layout that the HTML brings.
Maat's own scripts come before the libraries, so that they can ask for data while those come.
"""

from __future__ import annotations

import base64
import hashlib
from urllib.parse import quote

_BARS = "".join(
    f'<path fill="{colour}" d="M{left} 0h6v5h-6zm0 6.5h6v5h-6zm0 6.5h6v5h-6z"/>'
    for left, colour in ((0, "#0072B2"), (6, "#E69F00"), (12, "#009E73"))
)
_ICON = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 18 18">{_BARS}</svg>'

INDEX = """<!DOCTYPE html>
<html lang="en">
    <head>
        {%metas%}
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <title>{%title%}</title>
        <link rel="icon" href="data:image/svg+xml,maat-icon">
        <!-- maat-preloads -->
        {%css%}
        <script>
            (() => {
                let choice = null;
                try {
                    Object.keys(localStorage).forEach((key) => {
                        if (!key.includes('scheme-choice')) { return; }
                        choice = JSON.parse(localStorage[key])[0];
                    });
                } catch (ignored) { choice = null; }
                const darkSystem = matchMedia('(prefers-color-scheme: dark)').matches;
                const dark = choice === 'dark' || (choice !== 'light' && darkSystem);
                document.documentElement.dataset.maatScheme = dark ? 'dark' : 'light';
                let running = 0, rested = false, rest = null;
                const send = window.fetch, whenIdle = window.requestIdleCallback || setTimeout;
                const local = /^(localhost|127[.][0-9.]+|\\[::1\\])$/.test(location.hostname);
                const prefix = local && location.protocol === 'http:' ? '' : '__Host-';
                const inCookie = new RegExp(`(?:^|; )${prefix}maat_csrf=([0-9a-f]+)`);
                function csrfHeader() {
                    const found = inCookie.exec(document.cookie);
                    return found ? { 'X-CSRF-Token': found[1] } : {};
                }
                function ended() {
                    running -= 1;
                    clearTimeout(rest);
                    rest = setTimeout(() => whenIdle(() => { rested = running === 0; }), 500);
                }
                window.fetch = function (target, options) {
                    const address = String((target && target.url) || target);
                    const first = window.maat.firstAnswer && window.maat.firstAnswer(address);
                    if (first) { return first; }
                    const counted = address.includes('_dash-update-component');
                    if (!counted) { return send.apply(this, arguments); }
                    const post = () => {
                        running += 1;
                        rested = false;
                        const headers = new Headers((options || {}).headers);
                        Object.entries(csrfHeader()).forEach((pair) => headers.set(...pair));
                        return send.call(this, target, { ...options, headers }).finally(ended);
                    };
                    return window.maat.answerTo(options.body, post);
                };
                window.maat = { busy: () => running > 0, atRest: () => rested, csrfHeader };
            })();
        </script>
    </head>
    <body>
        {%app_entry%}
        <noscript>
            Maat's pages need JavaScript.
            Everything they show is at <a href="/docs">the REST API</a> too.
        </noscript>
        <footer>
            {%config%}
            <script id="first-layout" type="application/json">maat-first-layout</script>
            <script type="text/plain" id="charts-script" data-src="maat-charts-script"></script>
            <script src="maat-own-scripts"></script>
            <script src="maat-libraries"></script>
            {%scripts%}
            <script src="maat-later-scripts"></script>
            {%renderer%}
        </footer>
    </body>
</html>
""".replace("maat-icon", quote(_ICON))

# These stand for the addresses of scripts.
LIBRARIES, CHARTS_SCRIPT = "maat-libraries", "maat-charts-script"
OWN_SCRIPTS, LATER_SCRIPTS = "maat-own-scripts", "maat-later-scripts"

_SCRIPT = INDEX.partition("<script>")[2].partition("</script>")[0]
# What the Content-Security-Policy calls it, so that it, and no injected one, may run.
INDEX_SCRIPT_HASH = (
    f"'sha256-{base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()}'"
)
