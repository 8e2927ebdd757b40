/* Does in idle time what other pages will need: once the first page has its data, one thing after
   the other, and none of it for a visitor who asks to save data. */
(() => {
    'use strict';

    const { maat } = window;
    const LOOK_MILLISECONDS = 200;
    const waiting = [];
    const later = window.requestIdleCallback || ((act) => setTimeout(act, LOOK_MILLISECONDS));
    let running = false;

    const idle = () => new Promise((begin) => {
        const look = () => (maat.atRest() ? later(begin) : setTimeout(look, LOOK_MILLISECONDS));
        look();
    });

    async function run() {
        running = true;
        while (waiting.length) {
            await idle();
            await waiting.shift()();
        }
        running = false;
    }

    /* `act` may return a promise: what follows waits for it. */
    maat.inIdleTime = (act) => {
        if (navigator.connection?.saveData) { return; }
        waiting.push(act);
        if (!running) { run(); }
    };

    /* Lets a script come, and runs nothing of it. */
    maat.fetchScript = (address) => new Promise((done) => {
        const link = document.createElement('link');
        Object.assign(link, { rel: 'preload', as: 'script', href: address, onload: done });
        link.onerror = done;
        document.head.append(link);
    });
})();
