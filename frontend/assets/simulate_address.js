/* What was typed into the form of simulations stands in its address. */
(() => {
    'use strict';

    const { maat } = window;
    const PREFIX = 'simulate-';

    /* In an address, `cluster` is the cluster that is shown; that of a simulation is `gpus`. */
    const inSimulate = (id) => {
        const name = id.slice(PREFIX.length);
        return name === 'cluster' ? 'gpus' : name;
    };

    maat.callbacks({
        simulateInUrl(usual) {
            const inputs = window.dash_clientside.callback_context.inputs_list.slice(1);
            return maat.formInUrl('/simulate', inSimulate, { inputs, shown: inputs, usual });
        },
    });
})();
