/* Tells the components of changes of Dash's store less often. Dash tells every component of every
   change, and most changes are of its own books: that a component has been mounted, that a callback
   waits or runs. A page of 500 components has 900 of them before it shows its data.

   A changed layout is told at once, since what somebody types must be drawn in the same task. All
   else is told once, in a task of its own. */
(() => {
    'use strict';

    const later = new MessageChannel();
    const waiting = new Set();
    later.port1.onmessage = () => {
        const due = [...waiting];
        waiting.clear();
        due.forEach((tell) => tell());
    };

    function seldom(store) {
        const { subscribe } = store;
        store.subscribe = (listener) => {
            let told = store.getState().layout;
            const tell = () => {
                told = store.getState().layout;
                listener();
            };
            const leave = subscribe(() => {
                if (store.getState().layout !== told) {
                    waiting.delete(tell);
                    tell();
                } else if (!waiting.size) {
                    waiting.add(tell);
                    later.port2.postMessage(null);
                } else {
                    waiting.add(tell);
                }
            });
            return () => {
                waiting.delete(tell);
                leave();
            };
        };
    }

    /* Dash lists its stores here, before its components listen to them. */
    const stores = [];
    stores.push = (store) => {
        seldom(store);
        return Array.prototype.push.call(stores, store);
    };
    window.dash_stores = stores;
})();
