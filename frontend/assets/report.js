/* The rest of a report: drawn once its headlines and its first figure are on the screen. */
(() => {
    'use strict';

    const { maat } = window;
    const LATEST_MS = 300; // a page that is not seen is not drawn: its rest waits no longer

    const seen = () => new Promise((go) => {
        requestAnimationFrame(() => setTimeout(go));
        setTimeout(go, LATEST_MS);
    });

    const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

    maat.callbacks({
        /* `rest`: numbers of the first question, and the other questions; null without a report.
           `places`: the place of those numbers, or none. `more`: the questions that are shown. */
        async restOfReport(rest, places, more) {
            const { numbers, sections } = rest || { numbers: null, sections: null };
            if (rest) { await seen(); }
            const shown = same(sections, more) ? window.dash_clientside.no_update : sections;
            return [places.map(() => numbers), shown];
        }
    });
})();
