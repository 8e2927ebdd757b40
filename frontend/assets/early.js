/* Asks for what the first callbacks of a page will ask for as soon as its layout is known: while
   the libraries still come, or before the page is drawn. Dash's own calls then find their answers.
   Only calls whose values no other callback is about to change are made; one whose values have
   changed all the same is made again, by Dash. A grid asks for its first rows itself once it is
   drawn: its layout says what it will ask. The layout of a page is asked for while a pointer rests
   on its link, and what the page will ask for while the link is being pressed. */
(() => {
    'use strict';

    const { maat } = window;
    const CALL = '/_dash-update-component', KEPT_MILLISECONDS = 20000;
    /* What callbacks set, and the first layout holds already (first_visit.js). */
    const SETTLED = ['scheme.data', 'cluster-select.value', 'here.pathname'];
    const REST_MILLISECONDS = 40; // a pointer that passes over a link asks for nothing
    const PRESS_MILLISECONDS = 1000;
    const PAGE_LINK = '.nav-link[id]'; // others leave the pages
    const answers = new Map(); // what a call says: its answer, and when it was asked for
    let callbacks = [];

    const nameOf = ({ id, property }) => `${id}.${property}`;

    function outputsOf({ output }) {
        return output.replace(/^\.\.|\.\.$/g, '').split('...').map((name) => {
            const end = name.lastIndexOf('.');
            return { id: name.slice(0, end), property: name.slice(end + 1).split('@')[0] };
        });
    }

    /* What a call says: which outputs are asked for, and from which values. */
    function meaning({ output, inputs, state }) {
        const values = [...inputs, ...(state || [])].map((one) => [nameOf(one), one.value]);
        return JSON.stringify([output, values]);
    }

    function bodyOf(callback, props) {
        const given = ({ id, property }) => ({ id, property, value: props(id)[property] });
        const { output, inputs, state } = callback;
        return {
            output,
            outputs: outputsOf(callback),
            inputs: inputs.map(given),
            changedPropIds: [],
            parsedChangedPropsIds: [],
            state: state.map(given),
        };
    }

    /* Forgets the answers to calls that were made before. */
    function forget(before) {
        answers.forEach(({ asked }, key) => { if (asked < before) { answers.delete(key); } });
    }

    /* Returns the answer to a call: that of the same one, if it was made already. */
    function ask(body) {
        forget(performance.now() - KEPT_MILLISECONDS);
        const text = JSON.stringify(body), key = meaning(JSON.parse(text));
        if (!answers.has(key)) {
            const headers = { 'Content-Type': 'application/json', Accept: 'application/json' };
            const answer = fetch(CALL, { method: 'POST', headers, body: text });
            answer.catch(() => {});
            answers.set(key, { answer, asked: performance.now() });
        }
        return answers.get(key).answer;
    }

    /* `props`: of a component by its id, undefined if there is none. `isNew`: whether it has just
       come, so that Dash runs the callbacks that it takes part in. */
    function askFor(props, isNew) {
        const ofGrid = ({ inputs }) => inputs.length === 1
            && inputs[0].property === 'getRowsRequest' && props(inputs[0].id)?.getRowsRequest;
        const first = callbacks.filter((one) => {
            const ids = [...one.inputs, ...one.state, ...outputsOf(one)].map(({ id }) => id);
            const comesFirst = !one.prevent_initial_call || ofGrid(one);
            return comesFirst && ids.some(isNew) && ids.every((id) => props(id));
        });
        const changing = new Set(first.flatMap(outputsOf).map(nameOf));
        SETTLED.forEach((name) => changing.delete(name));
        first.filter((one) => !one.clientside_function && one.output.startsWith('..')
            && !one.inputs.some((input) => changing.has(nameOf(input))))
            .forEach((one) => ask(bodyOf(one, props)));
    }

    /* `known`: all callbacks. `parts`: the properties of the components by their ids. */
    maat.askEarly = (known, parts) => {
        callbacks = known;
        askFor((id) => parts[id], () => true);
    };

    /* The same for a page that is about to take the place of another in the frame. */
    maat.askForPage = (page) => {
        const { parts } = maat.partsOf(page);
        forget(performance.now() - PRESS_MILLISECONDS);
        askFor((id) => parts[id] || maat.layoutOf(id)?.props, (id) => id in parts);
    };

    /* The answer to such a call, once; null if it was not made. */
    maat.earlyAnswer = (body) => {
        forget(performance.now() - KEPT_MILLISECONDS);
        if (!answers.size) { return null; }
        const key = meaning(JSON.parse(body)), found = answers.get(key);
        answers.delete(key);
        return found ? found.answer : null;
    };

    /* ---- links ---- */

    /* The answer with the layout of the page that a link leads to; null if it is the one shown. */
    function layoutBehind({ pathname, search }) {
        const router = callbacks.find(({ output }) => output.includes('_pages_content.children'));
        const shown = maat.layoutOf('_pages_location')?.props;
        if (!router || !shown || pathname === shown.pathname) { return null; }
        const place = { ...shown, pathname, search };
        const props = (id) => (id === '_pages_location' ? place : maat.layoutOf(id)?.props);
        return ask(bodyOf(router, props));
    }

    async function pageBehind(link) {
        const answer = await layoutBehind(link);
        if (!answer || !answer.ok || answer.bodyUsed) { return; } // Dash has it already
        const { response } = await answer.clone().json();
        maat.askForPage(response._pages_content.children);
    }

    let rests = null;
    document.addEventListener('pointerover', (event) => {
        const link = maat.around(event.target, PAGE_LINK);
        clearTimeout(rests);
        if (link) { rests = setTimeout(() => layoutBehind(link), REST_MILLISECONDS); }
    });
    document.addEventListener('pointerdown', (event) => {
        const link = event.button === 0 && maat.around(event.target, PAGE_LINK);
        if (link) { pageBehind(link).catch(() => {}); } // a call that fails is made again
    });
})();
