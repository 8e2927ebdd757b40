/* The keys of the page. The help (`?`) lists them: SHORTCUTS in shell.py. */
(() => {
    'use strict';

    const { maat } = window;
    const PLACES = {
        o: '/', c: '/cluster', j: '/jobs', r: '/rounds', u: '/usage', f: '/fairness', p: '/reports',
        s: '/simulate', w: '/sweeps', e: '/experiments', m: '/measurements',
        l: '/papers', a: '/account', h: '/help',
    };
    const SOON = 100; // milliseconds

    /* Opens the help, as soon as the page is there. */
    function help() {
        if (!maat.layoutOf('help')) { setTimeout(help, SOON); return; }
        maat.setProps('help', { opened: true });
    }

    const KEYS = {
        '/': () => maat.focusField('jobs-search', '/jobs'),
        n: () => maat.focusField('submit-name', '/submit'),
        '?': help,
    };
    let afterG = false; // whether the last key was g, which begins the way to a page

    const typing = (target) => target.isContentEditable
        || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)
        || target.getAttribute?.('role') === 'combobox';

    document.addEventListener('keydown', (event) => {
        if (maat.submitByKey(event)) { return; }
        if (typing(event.target) || event.ctrlKey || event.metaKey || event.altKey) { return; }
        const onCell = event.key === 'Enter' && event.target.classList.contains('ag-cell');
        if (onCell && maat.openRow(event.target)) {
            event.preventDefault();
            return;
        }
        if (event.target.closest('[role="dialog"]')) { return; }
        const path = afterG && PLACES[event.key];
        const act = path ? () => maat.go(path) : KEYS[event.key];
        afterG = event.key === 'g';
        if (act) {
            event.preventDefault();
            act();
        }
    });
})();
