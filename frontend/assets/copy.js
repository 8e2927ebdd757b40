/* Buttons that copy the text of an element: of the first that is shown of those they name. */
(() => {
    'use strict';

    const { maat } = window;
    const TOLD_MILLISECONDS = 1500;

    /* Without the clipboard of a secure page, the browser copies what is selected. */
    async function copy(text) {
        if (navigator.clipboard) { return navigator.clipboard.writeText(text); }
        const field = document.body.appendChild(document.createElement('textarea'));
        field.value = text;
        field.select();
        const done = document.execCommand('copy');
        field.remove();
        return done ? undefined : Promise.reject(new Error('not copied'));
    }

    document.addEventListener('click', async (event) => {
        const button = maat.around(event.target, '[data-copy]');
        if (!button) { return; }
        const shown = button.dataset.copy.split(' ').map((id) => document.getElementById(id))
            .find((element) => element && element.offsetParent);
        const label = button.querySelector('.mantine-Button-label') || button;
        const words = label.textContent;
        const { value } = shown;
        const done = await copy(value === undefined ? shown.textContent : value)
            .then(() => 'Copied', () => 'Select it and press Ctrl+C');
        if (words !== done) {
            label.textContent = done;
            setTimeout(() => { label.textContent = words; }, TOLD_MILLISECONDS);
        }
    });
})();
