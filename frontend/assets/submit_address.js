/* What was typed into the submit form stands in its address, so that the address shows others the
   same form. Values that the form has by itself are left out, and so is all that the service does
   not show: no callback gives this script an environment or a secret. */
(() => {
    'use strict';

    const { maat } = window;
    const PATH = '/submit';
    const IN_RUN = 'submit-run-';

    const prefixOf = (id) => (id.startsWith(IN_RUN) ? IN_RUN : 'submit-');
    const nameOf = (id) => id.slice(prefixOf(id).length).replaceAll('-', '_');

    maat.callbacks({
        submitInUrl(played, run, models, isRun) {
            if (window.location.pathname !== PATH || (!isRun && !models.length)) {
                return maat.noUpdate(); // which form it is, or what it holds, is not known yet
            }
            const inputs = window.dash_clientside.callback_context.inputs_list.slice(4);
            const [first] = models;
            const usual = isRun ? run : { ...played, model: played.model || first.name };
            const prefix = isRun ? IN_RUN : 'submit-';
            const shown = inputs.filter(({ id }) => prefixOf(id) === prefix);
            return maat.formInUrl(PATH, nameOf, { inputs, shown, usual });
        },
    });
})();
