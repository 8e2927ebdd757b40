/* What the service tells without being asked: changes of rounds, jobs and operations, and its
   health. heartbeat.js lets the page refresh by it, and asks by itself while it hears nothing, or
   in a browser without shared workers. */
(() => {
    'use strict';

    const { maat } = window;
    const WORKER = '/assets/worker_events.js';
    const SILENT_SECONDS = 15;
    const listeners = [];
    let heardAt = -Infinity, health = null, healthAt = 0, version = null;

    /* Whether one of these changes is of what this page may show: of its cluster, or of none.
       `changed`: ids of clusters by topic; a worker of an earlier version does not tell them. */
    function isOfHere(changed) {
        if (changed === undefined || changed.operations !== undefined) { return true; }
        const select = maat.layoutOf('cluster-select');
        const here = select && select.props.value;
        return !here || here === 'none' || Object.values(changed).flat().includes(here);
    }

    function hear(kind, data) {
        heardAt = kind === 'ended' ? -Infinity : Date.now();
        if (kind === 'health') {
            health = data;
            healthAt = Date.now();
        } else if (kind === 'reset') {
            listeners.forEach((listener) => listener(String(Date.now())));
        } else if (kind === 'caught-up') {
            version = data.version;
            const { changed } = data;
            if (isOfHere(changed)) { listeners.forEach((listener) => listener(version)); }
            const hasRound = changed !== undefined && changed.rounds !== undefined;
            if (hasRound && health !== null && health.worker.state !== 'none') {
                health.worker.last_round_age_seconds = (healthAt - Date.now()) / 1000;
            }
        }
    }

    function listen() {
        if (window.SharedWorker === undefined) { return; }
        const { port } = new SharedWorker(WORKER);
        port.addEventListener('message', ({ data }) => hear(data.kind, data.data));
        port.start();
        port.postMessage('here');
        window.addEventListener('pagehide', () => port.postMessage('gone'));
        window.addEventListener('pageshow', () => port.postMessage('here'));
    }

    maat.push = {
        /* Calls `listener(version)` after each change that concerns this page. */
        onChange: (listener) => { listeners.push(listener); },
        version: () => version,
        heardAt: () => heardAt,
        /* The health of now; null if the service has told nothing for a while. */
        health: () => {
            const silent = (Date.now() - heardAt) / 1000;
            if (health === null || silent > SILENT_SECONDS) { return null; }
            const { worker } = health;
            const age = worker.last_round_age_seconds;
            const since = (Date.now() - healthAt) / 1000;
            const now = typeof age === 'number' ? Math.max(age + since, 0) : age;
            return { ...health, worker: { ...worker, last_round_age_seconds: now } };
        },
    };

    listen();
})();
