/* What a form of the laboratory holds stands in the address of its page. */
(() => {
    'use strict';

    const { maat } = window;
    const HOUR = 3600; // seconds

    /* A reservation as components/conditions/address.py reads it. */
    function textOf(reservation) {
        const { gpu_count: gpus, gpu_type: type, tenant, job } = reservation;
        const [begin, end] = [reservation.start_seconds, reservation.end_seconds]
            .map((seconds) => (seconds === null ? '' : seconds / HOUR));
        const whose = tenant === undefined ? ['job', job] : ['tenant', tenant];
        return [gpus, type, begin, end, ...whose].join(':');
    }

    /* Parameters by kind, as components/parameter_fields.py reads them. Until their fields are
       there, those that the address had. */
    function parametersOf(fields, written) {
        const found = { policy: [], placer: [] };
        const put = (owner, name, value) => {
            const [kind, ...rest] = owner.split(':');
            if (value !== null && value !== undefined && value !== '') {
                found[kind].push(`${rest.join(':')}:${name}=${value}`);
            }
        };
        if (fields.length) {
            fields.forEach(({ id, value }) => put(id.of, id.name, value));
        } else {
            Object.entries(written).forEach(([owner, values]) => {
                Object.entries(values).forEach(([name, value]) => put(owner, name, value));
            });
        }
        return found;
    }

    maat.callbacks({
        laboratoryInUrl(usual, reservations) {
            const { inputs_list: given, states_list: [written] } =
                window.dash_clientside.callback_context;
            const [, , parameters, ...plain] = given;
            const prefix = given[0].id.split('-')[0];
            /* In an address, `cluster` is the cluster that is shown; that of a simulation is
               `gpus`. */
            const nameOf = (id) => {
                const name = id.slice(prefix.length + 1);
                return name === 'cluster' ? 'gpus' : name;
            };
            const { policy, placer } = parametersOf(parameters, written.value || {});
            const listed = {
                reservation: (reservations || []).map(textOf),
                policy_parameter: policy,
                placer_parameter: placer,
            };
            const inputs = [...plain, ...Object.entries(listed)
                .map(([name, value]) => ({ id: `${prefix}-${name}`, value }))];
            return maat.formInUrl(`/${prefix}`, nameOf, { inputs, shown: inputs, usual });
        },
    });
})();
