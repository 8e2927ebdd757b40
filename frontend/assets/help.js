/* The page of terms: its search is in the address, and the term that the address names
   (`/help#rho`) is scrolled to and has the focus. */
(() => {
    'use strict';

    const { maat } = window;
    const AGAIN_MILLISECONDS = 50;

    function toTerm(key, tries) {
        const term = document.getElementById(key);
        if (term && term.matches('.term')) {
            term.focus({ preventScroll: true });
            term.scrollIntoView({ block: 'start' });
        } else if (tries) {
            setTimeout(() => toTerm(key, tries - 1), AGAIN_MILLISECONDS);
        }
    }

    /* A term of this page: nothing is drawn again. */
    document.addEventListener('click', (event) => {
        const anchor = maat.around(event.target, '.term-anchor');
        if (!anchor || event.ctrlKey || event.metaKey || event.shiftKey) { return; }
        event.preventDefault();
        const { pathname, search } = window.location, { hash } = anchor;
        window.history.replaceState(window.history.state, '', pathname + search + hash);
        toTerm(hash.slice(1), 0);
    });

    /* The way to the terms closes the dialog that it is in. */
    document.addEventListener('click', (event) => {
        if (maat.around(event.target, '.help-ways a')) { maat.setProps('help', { opened: false }); }
    });

    maat.callbacks({
        helpInUrl(sought) {
            return maat.setQuery({ q: (sought || '').trim() || null });
        },

        toTerm(hash) {
            const key = (hash || '').slice(1);
            if (key) { setTimeout(() => toTerm(key, 40), 0); }
            return maat.noUpdate();
        },
    });
})();
