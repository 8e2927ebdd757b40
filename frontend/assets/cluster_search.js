/* The search of the cluster map: nodes with its text in their name, GPU type, jobs or tenants stay,
   as large as they then fit; what on them has it not is dimmed. */
(() => {
    'use strict';

    const { maat } = window;

    function has(text, sought) { return (text || '').toLowerCase().includes(sought); }

    function isFound(stretch, sought) {
        return has(stretch.name, sought) || has(stretch.tenant, sought) || has(stretch.job, sought);
    }

    /* What stands where no node is found. */
    function nothing(map) {
        const note = document.createElement('div'), words = document.createElement('div');
        const button = document.createElement('button');
        note.className = 'panel-state nothing-found';
        words.textContent = `Nothing here has “${map.dataset.sought}”.`;
        button.className = 'button-link primary';
        button.type = 'button';
        button.textContent = 'Show all nodes';
        button.addEventListener('click', () => maat.setProps(`${map.id}-search`, { value: '' }));
        note.append(words, button);
        return note;
    }

    maat.seek = map => {
        const { nodes, elements } = map.maat;
        const sought = (map.dataset.sought || '').trim().toLowerCase();
        nodes.forEach((node, at) => {
            const whole = !sought || has(node.name, sought) || has(node.gpu_type, sought);
            let some = whole;
            elements[at].querySelectorAll('a').forEach(link => {
                const found = whole || isFound(link.maat.stretch, sought);
                link.classList.toggle('beside', !found);
                some = some || found;
            });
            elements[at].hidden = !some;
        });
        map.querySelectorAll('.gpu-nodes').forEach(box => {
            const none = !box.querySelector('.gpu-node:not([hidden])');
            box.hidden = none;
            box.previousElementSibling.hidden = none;
        });
        map.querySelector('.nothing-found')?.remove();
        if (sought && elements.every(element => element.hidden)) { map.append(nothing(map)); }
    };

    maat.callbacks({
        findOnMap(text, _known, id) {
            const map = document.getElementById(id), state = map && map.maat;
            if (!map) { return maat.noUpdate(); }
            const other = map.dataset.sought !== (text || '');
            map.dataset.sought = text || '';
            if (other) { maat.setQuery({ q: text || null }); }
            if (!state) { return ''; }
            if (other) { maat.seek(map); maat.fitMap(map); }
            if (!(text || '').trim()) { return ''; }
            const shown = maat.count(state.elements.filter(element => !element.hidden).length);
            const all = maat.count(state.nodes.length);
            return `${shown} of ${all} ${all === '1' ? 'node' : 'nodes'}`;
        },
    });
})();
