/* What was typed into the submit form stands in its address, so that the address shows others the
   same form. Values that the form has by itself are left out, and so is all that the service does
   not show: no callback gives this script an environment or a secret. */
(() => {
    'use strict';

    const { maat } = window;
    const PATH = '/submit';
    const WAIT = 200; // milliseconds: several fields change at once
    const LONGEST = 1000; // characters of a value, as in pages/submit/address.py
    const IN_RUN = 'submit-run-';
    let writing = null;

    const prefixOf = (id) => (id.startsWith(IN_RUN) ? IN_RUN : 'submit-');
    const nameOf = (id) => id.slice(prefixOf(id).length).replaceAll('-', '_');

    /* A field's value as it stands in the address: texts, none if it is empty. */
    const textsOf = (value) => [].concat(value === null || value === undefined ? [] : value)
        .map(String).filter((text) => text !== '');

    const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

    /* What differs in the fields of a form from what it holds by itself. */
    function differing(fields, usual) {
        const found = { empty: [] }, tooLong = [];
        fields.forEach(({ id, value }) => {
            const name = nameOf(id), texts = textsOf(value), before = textsOf(usual[name]);
            if (isSame(texts, before)) { return; }
            if (!texts.length) { found.empty.push(name); }
            if (texts.some((text) => text.length > LONGEST)) { tooLong.push(id); return; }
            found[name] = texts;
        });
        return { found, tooLong };
    }

    function labelOf(id) {
        const label = document.querySelector(`label[for="${id}"]`);
        return (label ? label.textContent : nameOf(id)).replace(/\s*\*$/, '');
    }

    maat.callbacks({
        submitInUrl(played, run, models, isRun) {
            if (window.location.pathname !== PATH || (!isRun && !models.length)) {
                return maat.noUpdate(); // which form it is, or what it holds, is not known yet
            }
            const inputs = window.dash_clientside.callback_context.inputs_list.slice(4);
            const [first] = models;
            const usual = isRun ? run : { ...played, model: played.model || first.name };
            const prefix = isRun ? IN_RUN : 'submit-';
            const { found, tooLong } = differing(
                inputs.filter(({ id }) => prefixOf(id) === prefix), usual,
            );
            const absent = Object.fromEntries(inputs.map(({ id }) => [nameOf(id), null]));
            clearTimeout(writing);
            writing = setTimeout(() => {
                if (window.location.pathname === PATH) { maat.setQuery({ ...absent, ...found }); }
            }, WAIT);
            const names = tooLong.map(labelOf).join(', ');
            return names ? `Too long for this page's address: ${names}.` : '';
        },
    });
})();
