/* Tells Dash what the reader folds and unfolds: a part that an answer is to unfold would stay
   folded if Dash had it for open. */
(() => {
    'use strict';

    const { maat } = window;

    document.addEventListener('toggle', (event) => {
        const { id, open } = event.target;
        const known = event.target.matches('details.folded[id]') && maat.layoutOf(id);
        if (known && Boolean(known.props.open) !== open) { maat.setProps(id, { open }); }
    }, true); // it does not bubble
})();
