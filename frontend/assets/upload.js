/* Boxes for files: a name for their fields, and a refusal of files that are too large. */
(() => {
    'use strict';

    const { maat } = window;
    const BOX = '[id$="-upload"]';
    const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

    /* dcc.Upload gives its field no name. */
    new MutationObserver(() => {
        const unnamed = `${BOX} input[type="file"]:not([aria-label])`;
        document.querySelectorAll(unnamed).forEach((field) => {
            const named = field.closest(BOX).querySelector('[data-most-bytes] [aria-label]');
            field.setAttribute('aria-label', named.getAttribute('aria-label'));
        });
    }).observe(document.documentElement, { childList: true, subtree: true });

    /* What is wrong with the size of these files; empty if they may come. */
    function refusal(files, most) {
        const tooLarge = files.filter((file) => file.size > most).map((file) => (
            `${file.name} has ${megabytes(file.size)}, more than the ${most / 1e6} MB that a file `
            + 'may have. Choose a smaller file.'
        ));
        if (tooLarge.length) { return tooLarge.join(' '); }
        const total = files.reduce((sum, file) => sum + file.size, 0);
        return total <= most ? ''
            : `The files have ${megabytes(total)} together, more than the ${most / 1e6} MB `
                + 'that may come at once. Choose fewer or smaller ones.';
    }

    /* Keeps files that are too large from dcc.Upload, which drops a file over its max_size without
       a word, and whose answer would cover the refusal. */
    function checkSize(event) {
        const box = maat.around(event.target, BOX);
        const files = Array.from((box && (event.dataTransfer || event.target).files) || []);
        if (!files.length) { return; }
        const limit = box.querySelector('[data-most-bytes]').dataset.mostBytes;
        const words = refusal(files, Number(limit));
        const form = box.id.replace(/-upload$/, '');
        maat.setProps(`${form}-csv-error`, { children: words });
        if (!words) { return; }
        maat.setProps(`${form}-text`, { data: null });
        maat.setProps(`${form}-file`, { children: '' });
        event.stopPropagation();
        event.preventDefault();
        if (event.type === 'drop') {
            event.target.dispatchEvent(new DragEvent('dragleave', { bubbles: true }));
        } else {
            event.target.value = '';
        }
    }
    document.addEventListener('change', checkSize, true);
    document.addEventListener('drop', checkSize, true);
})();
