/* The grids: when the list of jobs asks for its rows again, its columns, and its names in full. */
(() => {
    'use strict';

    const { maat } = window;
    const OF_TEXT = ['model', 'want', 'have', 'expected', 'gpu_hours', 'submitted_at', 'tenant'];
    const ROOM_FOR_THREE = 480; // pixels of a page that shows more than name and state
    const ROOM_FOR_WIDE = 1400, WIDE_PADDING = 72; // pixels
    const DRAWN_AFTER = [50, 400]; // milliseconds: new rows, and what changed in old ones
    const LIKELY_AS_WIDE = 0.8; // times the characters of the longest text
    const fitted = new WeakMap(); // box of a grid -> column -> forms of the texts that it fits

    function gridApi(id) {
        try { return window.dash_ag_grid.getApi(id); } catch (absent) { return null; }
    }

    /* Asks when no request is in flight: the grid would take the answer to an earlier request for
       that to the new filters. */
    function whenIdle(act) { setTimeout(() => (maat.busy() ? whenIdle(act) : act()), 100); }

    /* A list without rows has no block that could be refreshed. */
    function askAgain(api) {
        if (api.getDisplayedRowCount()) {
            api.refreshInfiniteCache();
        } else {
            api.purgeInfiniteCache();
        }
    }

    function fitColumns(id) {
        const api = gridApi(id), box = document.getElementById(id);
        if (!api || !box) { return; }
        fitName(api, box);
        spread(api, box);
        giveRoom(api, box);
        if (!('watched' in box.dataset)) {
            box.toggleAttribute('data-watched', true);
            api.addEventListener('modelUpdated', () => {
                DRAWN_AFTER.forEach((late) => setTimeout(() => giveRoom(api, box), late));
            });
            api.addEventListener('columnResized', ({ source }) => {
                if (source === 'uiColumnResized') { box.toggleAttribute('data-by-hand', true); }
            });
        }
    }

    /* Whether a column has a text that may need more room than it was given. A figure of the same
       form as an earlier one does not. */
    function hasOutgrown(box) {
        const known = fitted.get(box) || new Map();
        fitted.set(box, known);
        const grown = OF_TEXT.filter((column) => {
            const cells = [...box.querySelectorAll(`.ag-cell[col-id="${column}"]`)];
            const forms = cells.map((cell) => cell.textContent.replace(/\d/g, '0'));
            const before = known.get(column) || new Set();
            const longest = Math.max(0, ...[...before].map((form) => form.length));
            known.set(column, new Set([...before, ...forms]));
            return forms.some((form) => (
                !before.has(form) && form.length > LIKELY_AS_WIDE * longest));
        });
        return grown.length > 0;
    }

    /* Columns of text take what their text needs: the name has all that is left. What somebody has
       given a width keeps it. To measure them takes long, so it is not done for every round. */
    function giveRoom(api, box) {
        const first = !api.isDestroyed() && api.getDisplayedRowAtIndex(0);
        const waits = !first || !first.data || box.clientWidth < ROOM_FOR_THREE;
        if (waits || 'byHand' in box.dataset) { return; }
        if (hasOutgrown(box)) { api.autoSizeColumns(OF_TEXT); }
    }

    /* On a phone the name has all the room that the column beside it leaves. */
    function fitName(api, box) {
        const alone = box.clientWidth < ROOM_FOR_THREE;
        if (alone === ('alone' in box.dataset)) { return; }
        box.toggleAttribute('data-alone', alone);
        const beside = api.getColumnDef('state').width, { flex } = api.getColumnDef('name');
        const room = alone ? { flex: null, width: box.clientWidth - beside } : { flex };
        api.applyColumnState({ state: [{ colId: 'name', ...room }] });
    }

    /* On a wide screen the columns stand apart: else the name's would have all the room. */
    function spread(api, box) {
        const wide = box.clientWidth >= ROOM_FOR_WIDE;
        if (wide === ('wide' in box.dataset)) { return; }
        box.dataset.padding ??= api.getGridOption('autoSizePadding') ?? '';
        box.toggleAttribute('data-wide', wide);
        const padding = Number(box.dataset.padding) || undefined;
        api.setGridOption('autoSizePadding', wide ? WIDE_PADDING : padding);
        fitted.delete(box);
    }
    window.addEventListener('resize', () => fitColumns('jobs-grid'));

    maat.callbacks({
        /* Runs after the filters are stored, because the rows are asked for with what is stored. */
        restartGrid(_filters, _cluster, id) {
            const api = gridApi(id);
            if (!api) { return maat.noUpdate(); }
            const late = maat.busy();
            fitted.delete(document.getElementById(id));
            api.purgeInfiniteCache();
            if (late) { whenIdle(() => askAgain(api)); }
            return maat.noUpdate();
        },

        refreshGrid(_live, id) {
            const api = gridApi(id);
            if (api && api.getGridOption('rowModelType') === 'infinite') { askAgain(api); }
            return maat.noUpdate();
        },

        clearFilters: () => ['', [], [], [], [], '', [null, null], []],

        /* Shows the chosen columns beside the name, and puts them into the address: nothing for
           the usual ones, the name alone for none. */
        chooseColumns(chosen, { all, usual }, id) {
            const named = all.filter((name) => chosen.includes(name));
            const isUsual = String(named) === String(all.filter((name) => usual.includes(name)));
            const column = isUsual ? [] : named.length ? named : ['name'];
            maat.setQuery({ column });
            const api = gridApi(id);
            if (api) {
                api.setColumnsVisible(all.filter((name) => !chosen.includes(name)), false);
                api.setColumnsVisible(named, true);
                whenIdle(() => askAgain(api)); // the links beside the list name the columns
            }
            return column;
        },

        usualColumns: (clicks, { usual }) => (clicks ? usual : maat.noUpdate()),

        /* Gives the columns their room. */
        fitColumns(_request, id) {
            fitColumns(id);
            return maat.noUpdate();
        },
    });

    /* ---- names that are cut ---- */

    function tipBox() {
        const box = document.createElement('div');
        box.id = 'name-tip';
        box.setAttribute('aria-hidden', 'true');
        return document.body.appendChild(box);
    }

    /* Shows what is cut in the cell that has the focus in full, as the pointer shows it. */
    function nameTip(cell) {
        const link = cell?.querySelector('.cut-in-middle');
        const parts = cell ? [cell, ...(link ? link.children : [])] : [];
        const cut = parts.some((part) => part.scrollWidth > part.clientWidth + 1);
        const box = document.getElementById('name-tip') || (cut ? tipBox() : null);
        if (box) { box.style.display = cut ? 'block' : 'none'; }
        if (!cut) { return; }
        const at = cell.getBoundingClientRect();
        box.textContent = cell.textContent;
        const rightmost = window.innerWidth - box.offsetWidth - 8;
        box.style.left = `${Math.max(8, Math.min(at.left, rightmost))}px`;
        box.style.top = `${at.bottom + 2}px`;
    }
    document.addEventListener('focusin', (event) => nameTip(maat.around(event.target, '.ag-cell')));
    document.addEventListener('focusout', () => nameTip(null));
    document.addEventListener('scroll', () => nameTip(null), { capture: true, passive: true });

    /* Enter on a cell presses the cell's own button or link, or else opens the first link of the
       row. Returns whether there was one. */
    maat.openRow = (cell) => {
        const row = cell.closest('.ag-row');
        const links = () => `.ag-row[row-index="${row.getAttribute('row-index')}"] a[href]`;
        const target = cell.querySelector('a[href], button') || row.querySelector('a[href]')
            || cell.closest('.ag-root').querySelector(links());
        if (target) { target.click(); }
        return Boolean(target);
    };
})();
