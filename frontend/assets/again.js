/* "Try again" on what could not be loaded: asks for it once more, and leaves all else as it is. */
(() => {
    'use strict';

    const { maat } = window;

    /* Whether a refresh of the page runs the callback that fills this element. Dash lists the
       inputs of its callbacks: those that a refresh runs have `live` among them. */
    async function isRefreshed(id) {
        const answer = await fetch('/_dash-dependencies');
        if (!answer.ok) { return true; }
        const fills = (one) => one.output.includes(`${id}.`);
        return (await answer.json()).some(
            (one) => fills(one) && one.inputs.some((input) => input.id === 'live'));
    }

    /* An element that no refresh fills is loaded with its page. The address keeps filters and
       choices, so the page is loaded again. */
    async function askAgain(button) {
        const filled = button.closest('.graph')
            ? button.closest('.graph').querySelector('.dash-graph') : button.closest('[id]');
        let refreshed = true;
        try {
            refreshed = await isRefreshed(filled ? filled.id : '');
        } catch (away) { /* to load the page from a service that is away would lose it */ }
        if (refreshed) {
            maat.setProps('live', { data: { at: Date.now() } });
        } else {
            window.location.reload();
        }
    }

    document.addEventListener('click', (event) => {
        const button = maat.around(event.target, 'button.again');
        if (!button) { return; }
        if (maat.away.isShown()) { maat.beatNow(); } else { askAgain(button); }
    });
})();
