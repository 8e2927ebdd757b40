/* Boxes for files: a name for their fields, and a refusal of files that are too large or of
   another kind. */
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

    const isOf = (kinds, { name, type }) => kinds.some((kind) => (
        kind.startsWith('.') ? name.toLowerCase().endsWith(kind) : type === kind));

    /* What is wrong with these files; empty if they may come. `kinds`: none for any. */
    function refusal(files, most, kinds) {
        const others = files.filter((file) => kinds.length && !isOf(kinds, file));
        if (others.length) {
            const ends = kinds.filter((kind) => kind.startsWith('.')).join(', ');
            return `${others.map(({ name }) => name).join(', ')}: only ${ends} is read here. `
                + 'Choose another file.';
        }
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

    /* Keeps such files from dcc.Upload, which drops them without a word, and whose answer would
       cover the refusal. */
    function check(event) {
        const box = maat.around(event.target, BOX);
        const files = Array.from((box && (event.dataTransfer || event.target).files) || []);
        if (!files.length) { return; }
        const { mostBytes, accept } = box.querySelector('[data-most-bytes]').dataset;
        const words = refusal(files, Number(mostBytes), (accept || '').split(',').filter(Boolean));
        const form = box.id.replace(/-upload$/, '');
        maat.setProps(`${form}-csv-error`, { children: words });
        if (!words) { return; }
        maat.setProps(box.id, { contents: null }); // the file before it may be chosen again
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
    document.addEventListener('change', check, true);
    document.addEventListener('drop', check, true);
})();
