/* What was typed into a form of the laboratory stands in the address of its page. */
(() => {
    'use strict';

    const { maat } = window;

    maat.callbacks({
        laboratoryInUrl(usual) {
            const inputs = window.dash_clientside.callback_context.inputs_list.slice(1);
            const prefix = inputs[0].id.split('-')[0];
            /* In an address, `cluster` is the cluster that is shown; that of a simulation is
               `gpus`. */
            const nameOf = (id) => {
                const name = id.slice(prefix.length + 1);
                return name === 'cluster' ? 'gpus' : name;
            };
            return maat.formInUrl(`/${prefix}`, nameOf, { inputs, shown: inputs, usual });
        },
    });
})();
