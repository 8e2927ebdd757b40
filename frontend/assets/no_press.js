/* Answers calls that no press has caused. A button that comes with its page makes Dash call what
   its press would, if that changes anything outside the page, such as the notices. Nothing changes
   then, so the service need not be asked, and what waits for the answer need not wait. */
(() => {
    'use strict';

    const { maat } = window;
    const PRESS = /\.(n_clicks|n_blur|n_submit)$/;

    maat.isNoPress = (body) => {
        const { inputs, changedPropIds } = JSON.parse(body);
        const values = new Map(inputs.flat().map(
            ({ id, property, value }) => [`${id}.${property}`, value]));
        return changedPropIds.length > 0 && changedPropIds.every(
            (name) => PRESS.test(name) && values.has(name) && !values.get(name));
    };

    maat.isPress = (body) => JSON.parse(body).changedPropIds.some((name) => PRESS.test(name));

    /* As Dash's service says that nothing changes. */
    maat.nothingChanges = () => new Response(null, { status: 204 });
})();
