/* Steps through the past rounds of a cluster (frontend/components/past_rounds.py). The round that
   is chosen is a number, or null for the present; it stands in the address. */
(() => {
    'use strict';

    const { maat } = window;

    function toward(step, past, latest) {
        const next = (past === null || past === undefined ? latest : past) + step;
        return next >= latest ? null : next;
    }

    /* Whether the visitor moves the slider: it tells too of what `followRound` set. */
    function isHeld() {
        const slider = document.getElementById('past-slider');
        return Boolean(slider && slider.contains(document.activeElement));
    }

    maat.callbacks({
        chooseRound(slider, _back, _on, _now, past, bounds) {
            const asked = window.dash_clientside.callback_context.triggered_id;
            if (!bounds || (asked === 'past-slider' && !isHeld())) { return maat.noUpdate(); }
            const { first, latest } = bounds;
            const wanted = {
                'past-slider': () => (slider >= latest ? null : slider),
                'past-back': () => Math.max(first, toward(-1, past, latest) ?? latest),
                'past-on': () => toward(1, past, latest),
                'past-now': () => null,
            }[asked]();
            const now = past === undefined ? null : past;
            if (wanted === now || wanted === undefined) { return maat.noUpdate(); }
            maat.setQuery({ round: wanted });
            return wanted;
        },

        followRound(past, bounds) {
            if (!bounds) { return [1, 2, 2, { display: 'none' }]; }
            const { first, latest } = bounds;
            const shown = past === null || past === undefined ? latest : past;
            const most = Math.max(latest, first + 1, shown);
            return [first, most, shown, {}];
        },
    });
})();
