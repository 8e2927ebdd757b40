/* A shared worker: holds one event stream of the service for all tabs of this browser, which may
   open only six connections, and tells them what comes. No page loads this script. */
(() => {
    'use strict';

    const STREAM = '/api/v1/events?topics=rounds,jobs,operations,health&brief=true';
    const TOLD = ['ready', 'reset', 'health', 'caught-up', 'ended'];
    const AGAIN_MILLISECONDS = 5000;
    const tabs = new Set();
    let stream = null, isFirst = true;

    function tell(kind, data) {
        tabs.forEach((tab) => tab.postMessage({ kind, data }));
    }

    function close() {
        if (stream !== null) { stream.close(); }
        stream = null;
    }

    /* After a break the browser itself comes again; after a refusal it does not. */
    function open() {
        if (stream !== null || tabs.size === 0) { return; }
        stream = new EventSource(STREAM);
        if (!isFirst) { tell('reset', {}); } // what happened in between, nobody tells
        isFirst = false;
        TOLD.forEach((kind) => {
            stream.addEventListener(kind, (event) => {
                tell(kind, JSON.parse(event.data));
                if (kind === 'ended') { close(); }
            });
        });
        stream.addEventListener('error', () => {
            if (stream !== null && stream.readyState === EventSource.CLOSED) {
                close();
                setTimeout(open, AGAIN_MILLISECONDS);
            }
        });
    }

    self.addEventListener('connect', (event) => {
        const [tab] = event.ports;
        tab.addEventListener('message', (message) => {
            if (message.data === 'here') {
                tabs.add(tab);
                open();
            } else {
                tabs.delete(tab);
                if (tabs.size === 0) { close(); }
            }
        });
        tab.start();
    });
})();
