/* Does in idle time what other pages will need: once the first page has its data, one thing after
   the other, and none of it for a visitor who asks to save data. */
(() => {
    'use strict';

    const { maat } = window;
    const LOOK_MILLISECONDS = 200, QUIET_LOOKS = 3; // in a row at which no call is in flight
    const MOST_MILLISECONDS = 10000; // of waiting for what a page is still to show
    const UNSHOWN = '.mantine-Skeleton-root, .graph.loading';
    const waiting = [];
    const later = window.requestIdleCallback || ((act) => setTimeout(act, LOOK_MILLISECONDS));
    let running = false;

    /* A page whose figures came with its HTML makes no call at all. */
    const idle = () => new Promise((begin) => {
        const until = performance.now() + MOST_MILLISECONDS;
        const draws = () => performance.now() < until && document.querySelector(UNSHOWN);
        let quiet = 0;
        function look() {
            const works = maat.busy() || document.readyState !== 'complete' || draws();
            quiet = works ? 0 : quiet + 1;
            if (quiet < QUIET_LOOKS) { setTimeout(look, LOOK_MILLISECONDS); } else { later(begin); }
        }
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
