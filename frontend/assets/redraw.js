/* Redraws only what changed. Dash replaces every element that an answer contains
   (plotly/dash#3846). The replaced elements lose focus, selected text and a press in progress.
   This script removes from each answer whatever the page already shows. */
(() => {
    'use strict';

    const { maat } = window;
    let shownPath = null;

    /* The path of the page that is shown, null before the first has come. */
    maat.shownPath = () => shownPath;
    maat.noteShown = (path) => {
        shownPath = path;
        document.documentElement.dataset.page = path; // for the styles
    };

    /* A part of a layout as text, without the counts of presses, which draw nothing. */
    const drawn = (part) => JSON.stringify(part, (name, value) => (
        name.startsWith('n_clicks') ? undefined : value
    ));

    /* Dash calls it with every answer of the service (hooks of app.py). */
    maat.onlyChanged = (asked, answer) => {
        if ('_pages_content' in answer) {
            maat.noteShown(asked.inputs.find((input) => input.property === 'pathname').value);
            maat.askForPage(answer._pages_content.children);
        }
        Object.keys(answer).forEach((id) => {
            const standing = /^[_{]/.test(id) ? null : maat.layoutOf(id);
            if (!standing) { return; }
            const same = (prop) => drawn(answer[id][prop]) === drawn(standing.props[prop]);
            ['children', 'figure'].forEach((prop) => {
                if (prop in answer[id] && same(prop)) { delete answer[id][prop]; }
            });
        });
    };
})();
