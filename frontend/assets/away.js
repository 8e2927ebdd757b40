/* What pages asked of the service and did not get. While it is away, the frame says so
   (heartbeat.js), what was there stays, and a page or the rows of a list are asked for again as
   soon as it answers: nothing else would ask for them. */
(() => {
    'use strict';

    const { maat } = window;
    const PATIENCE_SECONDS = 2.5;
    const PAGE = '_pages_content', ROWS = /([\w-]+)\.getRowsResponse/;
    const calls = new Set();
    let waiting = [];

    const isRepeated = (call) => call.output.includes(PAGE) || ROWS.test(call.output);

    function outputOf(body) {
        const found = /"output":"((?:[^"\\]|\\.)*)"/.exec(body);
        return found ? found[1] : '';
    }

    /* A newer call of the same output stands for those before it. */
    function begin(output) {
        calls.forEach((old) => { if (old.output === output && old.isLost) { calls.delete(old); } });
        const call = { output, since: Date.now(), isLost: false };
        calls.add(call);
        return call;
    }

    /* The answer to a call that is lost: an error. Dash frees the pressed button when an answer
       comes, also one of an error; without an answer the button stays disabled. */
    function lost(body) {
        if (maat.isPress(body)) {
            const title = '⚠ This press did not arrive: Maat does not answer';
            const closeButtonProps = { 'aria-label': 'Close this notice' };
            maat.setProps('notices', { sendNotifications: [{
                action: 'show', title, message: 'Press again once it answers.', color: 'red',
                autoClose: 10000, closeButtonProps,
            }] });
        }
        return new Response(null, { status: 503 });
    }

    /* The page sends every call through this (index.py). */
    maat.answerTo = async (body, post) => {
        if (maat.isNoPress(body)) { return maat.nothingChanges(); }
        const call = begin(outputOf(body));
        let early = maat.earlyAnswer(body);
        for (;;) {
            try {
                const answer = await (early || post());
                calls.delete(call);
                return answer;
            } catch (unreachable) {
                early = null;
                call.isLost = true;
                if (!isRepeated(call)) { return lost(body); }
                await new Promise((answered) => { waiting.push(answered); });
                if (!calls.has(call)) { throw unreachable; }
            }
        }
    };

    function missing() {
        const late = Date.now() - 1000 * PATIENCE_SECONDS;
        return Array.from(calls).filter((call) => call.isLost || call.since < late);
    }

    /* Rows that do not come look failed, and not as if they were being loaded. */
    function tellGrids(outputs) {
        outputs.map((output) => ROWS.exec(output)).forEach((found) => {
            if (found && document.querySelector(`#${found[1]} .loading`)) {
                const [told] = maat.layoutOf('away').props.children;
                maat.setProps(`${found[1]}-told`, { children: told });
            }
        });
    }

    function words(outputs) {
        if (outputs.some((output) => output.includes(PAGE))) {
            return `The page ${window.location.pathname} has not come: the one before it stays.`;
        }
        return outputs.length ? 'What was asked for last has not come.' : '';
    }

    maat.away = {
        /* Whether anything asked for has not come for so long that the service may be away. */
        isSuspected: () => missing().length > 0,
        /* Says in words what has not come, now that the service is known to be away. */
        told() {
            const outputs = missing().map((call) => call.output);
            tellGrids(outputs);
            return words(outputs);
        },
        /* The service answers: what can be repeated is asked for again. */
        over() {
            const isGone = (call) => call.isLost && !isRepeated(call);
            Array.from(calls).filter(isGone).forEach((call) => calls.delete(call));
            waiting.forEach((answered) => answered());
            waiting = [];
        },
        isShown: () => !maat.layoutOf('away').props.hidden,
    };
})();
