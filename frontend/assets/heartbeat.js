/* The heartbeat: lets the page refresh after each change that the service tells (push.js), and says
   of which moment its figures are. While it tells nothing, it asks: only /api/v1/health. */
(() => {
    'use strict';

    const { maat } = window;
    const STALE_SECONDS = 15;
    /* A service that stands still refuses nothing and never answers. Within a beat, which the next
       one would make void, its answer is waited for; a later one is taken up by a later beat. */
    const PATIENCE_SECONDS = 2.5, GIVE_UP_SECONDS = 20;
    const SOON_MILLISECONDS = 500; // until the first beat of a page, whose figures come meanwhile
    const SILENCE = new Error('no answer yet');
    let asked = null;
    /* Pages whose figures follow the rounds. The result of a simulation does not age. */
    const OF_ROUNDS = /^\/(cluster|jobs(\/.+)?|rounds(\/[^/]+)?)?$/;
    /* Some of what pages show changes without an event: all tabs ask for it at the same moments. */
    const REFRESH_MILLISECONDS = 30000;
    const BETWEEN_MILLISECONDS = 5000, REST_MILLISECONDS = 200;
    let lastAnswer = Date.now();
    let refreshedAt = 0, due = null, waiting = null;
    let beatsAstray = 0;

    function span(seconds) {
        if (seconds < 60) { return `${Math.round(seconds)} s`; }
        if (seconds < 3600) { return `${Math.round(seconds / 60)} min`; }
        if (seconds < 86400) { return `${Math.round(seconds / 3600)} h`; }
        return `${Math.round(seconds / 86400)} d`;
    }

    const NO_ROUND = ' No round has been made since: the worker may have stopped. Who runs Maat'
        + ' sees why under Admin, Health, or by maat ready.';

    /* Dims old figures, and returns the words for it. `since`: their time, null while they are
       up to date. `why`: what is known of the cause. */
    function aged(since, why = '') {
        if (since === null) {
            delete document.documentElement.dataset.maatStale;
            return '';
        }
        document.documentElement.dataset.maatStale = '';
        const at = new Date(since).toISOString();
        const ago = span((Date.now() - since) / 1000);
        const moment = `${at.slice(11, 19)} UTC on ${at.slice(0, 10)}`;
        return `Not of now: this page shows how it stood ${ago} ago, at ${moment}.${why}`;
    }

    /* The time of the last round if rounds have stopped and the page follows them, else null. */
    function withoutRounds(health) {
        const worker = health.worker || {};
        const age = worker.last_round_age_seconds;
        const stale = worker.state === 'stale' && typeof age === 'number';
        return stale && OF_ROUNDS.test(window.location.pathname) ? Date.now() - 1000 * age : null;
    }

    function freshness(health) {
        const worker = health.worker || {};
        const age = worker.last_round_age_seconds ?? null;
        if (health.disk === 'full') {
            return ['the disk of Maat is full', 'freshness stale'];
        }
        if (worker.state === 'none' || age === null) {
            return ['no round yet', 'freshness waiting'];
        }
        if (worker.state === 'stale') {
            return [`stale · last round ${span(age)} ago`, 'freshness stale'];
        }
        return [`live · round ${span(age)} ago`, 'freshness live'];
    }

    /* Whether the page of the address was asked for and did not come: nothing else would ask for
       it again. */
    function astray() {
        const shown = maat.shownPath();
        const elsewhere = shown !== null && shown !== window.location.pathname && !maat.busy();
        beatsAstray = elsewhere ? beatsAstray + 1 : 0;
        return beatsAstray > 1;
    }

    function health() {
        if (asked === null) {
            const signal = AbortSignal.timeout(1000 * GIVE_UP_SECONDS);
            const headers = { Accept: 'application/json' };
            asked = fetch('/api/v1/health', { headers, signal });
        }
        return asked;
    }

    function turnOf(moment) {
        return Math.floor(moment / REFRESH_MILLISECONDS);
    }

    /* A value of `live`: equal in all tabs that ask after the same change, so that the service
       works their answers out once. */
    function beatOf(version) {
        refreshedAt = Date.now();
        due = null;
        return { at: `${version}/${turnOf(refreshedAt)}` };
    }

    /* Refreshes after a change as soon as the page is at rest, and seldom enough to be read. */
    function refreshWhenDue() {
        clearTimeout(waiting);
        const clock = maat.layoutOf('heartbeat');
        if (due === null || document.hidden || clock === null || clock.props.disabled) { return; }
        const early = BETWEEN_MILLISECONDS - (Date.now() - refreshedAt);
        if (early > 0 || !maat.atRest()) {
            waiting = setTimeout(refreshWhenDue, Math.max(early, REST_MILLISECONDS));
            return;
        }
        refresh(beatOf(due));
    }

    /* That of a page which has its first figures or is about to ask for them. */
    maat.firstBeat = () => beatOf(Date.now());

    maat.push.onChange((version) => {
        due = version;
        refreshWhenDue();
    });
    document.addEventListener('visibilitychange', refreshWhenDue);

    /* Lets the page refresh. The callback has no output for it: the page's first calls would wait
       for that, and Dash would drop those that follow nothing else if it did not change. */
    function refresh(beat) { maat.setProps('live', { data: beat }); }

    /* What is said while the service answers; nothing is missing then. */
    function alive(told) {
        return [...freshness(told), aged(withoutRounds(told), NO_ROUND), true, ''];
    }

    /* The same while the service tells by itself how it is. */
    function beatOfPush(told, live) {
        const now = Date.now();
        lastAnswer = maat.push.heardAt();
        const old = turnOf(now) > turnOf(refreshedAt);
        if (!live || ((old || due !== null) && !document.hidden && maat.atRest())) {
            refresh(beatOf(due || maat.push.version() || now));
        }
        return alive(told);
    }

    /* What is said while the service is away: all that shows is of its last answer. */
    function away() {
        const silent = (Date.now() - lastAnswer) / 1000;
        const missing = maat.away.told();
        const soon = silent < STALE_SECONDS;
        const words = soon ? 'retrying' : `no answer for ${span(silent)}, retrying`;
        const since = soon && !missing ? null : lastAnswer;
        return [words, 'freshness stale', aged(since), since === null, missing];
    }

    function silence() {
        return new Promise((_, reject) => {
            setTimeout(() => reject(SILENCE), 1000 * PATIENCE_SECONDS);
        });
    }

    maat.beatNow = () => {
        const beats = maat.layoutOf('heartbeat').props.n_intervals || 0;
        maat.setProps('heartbeat', { n_intervals: beats + 1 });
    };

    maat.callbacks({
        async heartbeat(beats, live) {
            const told = maat.push.health();
            if (told === null && !beats && live) {
                setTimeout(maat.beatNow, SOON_MILLISECONDS);
                return Array(5).fill(maat.noUpdate());
            }
            if (told !== null && !maat.away.isSuspected()) {
                if (astray()) { window.location.reload(); }
                return beatOfPush(told, live);
            }
            /* A page that shows nothing yet asks for its figures all the same, or for why there are
               none. */
            const askAtOnce = () => !live && refresh({ at: Date.now() });
            try {
                const answer = await Promise.race([health(), silence()]);
                asked = null;
                if (!answer.ok && answer.status !== 503) {
                    askAtOnce();
                    const words = `no access (${answer.status})`;
                    return [words, 'freshness stale', aged(lastAnswer), true, ''];
                }
                const now = await answer.json();
                lastAnswer = Date.now();
                maat.away.over();
                if (astray()) { window.location.reload(); }
                if (!live || (!document.hidden && maat.atRest())) { refresh({ at: Date.now() }); }
                return alive(now);
            } catch (unreachable) {
                if (unreachable !== SILENCE) { asked = null; }
                askAtOnce();
                return away();
            }
        },
    });
})();
