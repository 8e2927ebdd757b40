/* Asks for what the first callbacks of a page will ask for as soon as its layout is known: while
   the libraries still come, or before the page is drawn. Dash's own calls then find their answers.
   Only calls whose values no other callback is about to change are made; one whose values have
   changed all the same is made again, by Dash. A grid asks for its first rows itself once it is
   drawn: its layout says what it will ask. */
(() => {
    'use strict';

    const { maat } = window;
    const CALL = '/_dash-update-component', KEPT_MILLISECONDS = 20000;
    /* What callbacks set, and the first layout holds already (first_visit.js). */
    const SETTLED = ['scheme.data', 'cluster-select.value', 'here.pathname'];
    const answers = new Map();
    let callbacks = [], until = KEPT_MILLISECONDS;

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

    function ask(body) {
        const headers = { 'Content-Type': 'application/json', Accept: 'application/json' };
        const answer = fetch(CALL, { method: 'POST', headers, body: JSON.stringify(body) });
        answer.catch(() => {});
        answers.set(meaning(JSON.parse(JSON.stringify(body))), answer);
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
        answers.clear();
        until = performance.now() + KEPT_MILLISECONDS;
        askFor((id) => parts[id] || maat.layoutOf(id)?.props, (id) => id in parts);
    };

    /* The answer to such a call, once; null if it was not made. */
    maat.earlyAnswer = (body) => {
        if (!answers.size) { return null; }
        if (performance.now() > until) { answers.clear(); }
        const key = meaning(JSON.parse(body)), answer = answers.get(key);
        answers.delete(key);
        return answer || null;
    };
})();
