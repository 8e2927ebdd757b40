/* The list of nodes below the cluster map. It comes after the map, so what is to be shown in it is
   tried until it is there. */
(() => {
    'use strict';

    const { maat } = window;
    const LOOK_MILLISECONDS = 100, MOST_LOOKS = 100;

    function list() {
        try { return window.dash_ag_grid.getApi('cluster-nodes'); } catch (absent) { return null; }
    }

    /* `act` returns whether it is done. */
    function untilDone(act, looks = MOST_LOOKS) {
        if (!looks || window.location.pathname !== '/cluster' || act()) { return; }
        setTimeout(() => { untilDone(act, looks - 1); }, LOOK_MILLISECONDS);
    }

    /* Brings the row of a node into sight. Returns whether there is one. */
    maat.showNode = (name) => {
        const api = list(), row = api && api.getRowNode(name);
        if (!row) { return false; }
        api.ensureNodeVisible(row, 'middle');
        api.setFocusedCell(row.rowIndex, 'name');
        document.getElementById('cluster-nodes').scrollIntoView({ block: 'nearest' });
        return true;
    };

    /* The node that the address names; null if it names none. */
    maat.showAskedNode = (name, nodes) => {
        const there = !name || nodes.some((node) => node.name === name);
        const missing = `There is no node “${name}” in this cluster. `
            + 'The list below has all its nodes.';
        window.dash_clientside.set_props('cluster-asked', { children: there ? [] : missing });
        if (name && there) { untilDone(() => maat.showNode(name)); }
    };

    /* The column of faults is there while a node has one. */
    maat.showFaults = (nodes) => {
        const some = nodes.some(({ fault }) => fault);
        untilDone(() => {
            const api = list();
            if (api && api.getColumn('fault').isVisible() !== some) {
                api.setColumnsVisible(['fault'], some);
            }
            return api;
        });
    };
})();
