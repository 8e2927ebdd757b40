/* The layout that came with the HTML (first_visit.py): Dash gets it instead of asking for it. */
(() => {
    'use strict';

    const { maat } = window;
    const place = document.getElementById('first-layout');
    let text = place ? place.textContent : '';

    /* The page in it is that of the address already: the router of the pages has nothing to do. */
    function ofThisAddress(_key, value) {
        if (!value || value.id !== '_pages_location') { return value; }
        const { pathname, search } = window.location;
        return { ...value, pathname, search };
    }

    /* Answers Dash's request once; null afterwards, and if none came. */
    maat.firstLayout = () => {
        if (!text) { return null; }
        const layout = JSON.stringify(JSON.parse(text, ofThisAddress));
        text = '';
        maat.noteShown(window.location.pathname);
        return new Response(layout, { headers: { 'Content-Type': 'application/json' } });
    };
})();
