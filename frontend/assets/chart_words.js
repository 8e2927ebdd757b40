/* Every chart in words, for readers who do not see it: a name that sums it up, and its numbers as
   a table. Reads what Plotly has drawn, and keeps the height that a figure brings. */
(() => {
    'use strict';

    const { maat } = window;
    const MOST_ROWS = 500, MOST_LINES = 6;

    function text(value) {
        if (value === null || value === undefined) { return ''; }
        if (typeof value === 'number') { return String(Number(value.toPrecision(6))); }
        return String(value).replace(/<br>/g, ', ').replace(/<[^>]*>/g, '')
            .replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&amp;/g, '&');
    }

    maat.textOf = text;

    function listed(values) { return values ? Array.from(values) : []; }

    /* The first title that the figure gives an axis of this letter. Plotly's own layout has words
       for editors where none is given. */
    function given(plot, letter) {
        const axes = Object.entries(plot.layout || {})
            .filter(([name]) => name.startsWith(`${letter}axis`));
        const titles = axes.map(([, axis]) => axis && axis.title && text(axis.title.text));
        return titles.find(Boolean);
    }

    function title(plot, letter) { return given(plot, letter) || letter; }

    function lines(plot) {
        return (plot.data || []).filter(
            trace => trace.type !== 'heatmap' && listed(trace.y || trace.x).length);
    }

    function heatmaps(plot) {
        return (plot.data || []).filter(trace => trace.type === 'heatmap');
    }

    /* ---- a name ---- */

    function extent(trace) {
        const across = trace.orientation === 'h', name = text(trace.name) || 'values';
        const values = listed(across ? trace.x : trace.y)
            .filter(value => typeof value === 'number');
        if (!values.length) { return name; }
        const least = Math.min.apply(null, values), most = Math.max.apply(null, values);
        const last = trace.type === 'bar' || trace.type === 'box'
            ? '' : `, last ${text(values[values.length - 1])}`;
        const range = least === most ? text(least) : `${text(least)} to ${text(most)}`;
        return `${name}: ${range}${last}`;
    }

    /* What a chart says instead of being drawn: 'waiting', 'empty' or 'error'; else null. */
    function stateOf(plot) {
        const meta = plot.layout && plot.layout.meta;
        return (meta && meta.state) || null;
    }

    function waits(plot) { return stateOf(plot) === 'waiting'; }

    function summary(plot) {
        const drawn = lines(plot), maps = heatmaps(plot);
        if (waits(plot)) { return 'Chart, nothing drawn yet'; }
        if (stateOf(plot)) {
            return listed(plot.layout.annotations).map(note => text(note.text)).join(' ');
        }
        if (!drawn.length && !maps.length) { return 'Chart, nothing drawn yet'; }
        const axes = ['y', 'x'].map(letter => given(plot, letter)).filter(Boolean).join(' by ');
        const shape = map => `${listed(map.y).length} rows, ${listed(map.x).length} columns`;
        const told = maps.map(shape)
            .concat(drawn.slice(0, MOST_LINES).map(extent));
        if (drawn.length > MOST_LINES) { told.push(`and ${drawn.length - MOST_LINES} more`); }
        return `Chart: ${axes ? `${axes}. ` : ''}${told.join('; ')}.`;
    }

    /* ---- a table ---- */

    function table(heads, rows) {
        const made = document.createElement('table');
        made.className = 'plain-table';
        const head = made.createTHead().insertRow(), body = made.createTBody();
        heads.forEach(words => {
            const cell = head.appendChild(document.createElement('th'));
            cell.scope = 'col';
            cell.textContent = words;
        });
        rows.slice(0, MOST_ROWS).forEach(values => {
            const row = body.insertRow();
            values.forEach((value, column) => {
                const cell = row.insertCell(), address = values.leadsTo && values.leadsTo[column];
                const place = address
                    ? cell.appendChild(document.createElement('a')) : cell;
                if (address) { place.href = address; }
                place.textContent = text(value);
                if (typeof value === 'number') { cell.className = 'number'; }
            });
        });
        return made;
    }

    function rowsOf(plot) {
        const rows = [];
        lines(plot).forEach(trace => {
            const x = listed(trace.x), y = listed(trace.y);
            for (let at = 0; at < Math.max(x.length, y.length); at += 1) {
                const row = [text(trace.name), x.length ? x[at] : at, y.length ? y[at] : at];
                row.leadsTo = {1: maat.addressOfPoint(listed(trace.customdata)[at])};
                rows.push(row);
            }
        });
        return rows;
    }

    function named(words, values) {
        return values.map((value, at) => (words && words[at] !== undefined ? words[at] : value));
    }

    /* The whole names of the rows of a chart that has room for their parts only; else none. */
    function wholeNames(plot) { return listed(((plot.layout || {}).meta || {}).row_names); }

    /* A name that is cut beside the cells is whole under the pointer. */
    function nameRows(plot) {
        const names = wholeNames(plot);
        if (!names.length) { return; }
        const shown = listed(plot._fullLayout.yaxis.ticktext).map(text);
        plot.querySelectorAll('.ytick text').forEach(label => {
            const whole = names[shown.indexOf(label.textContent)];
            if (!whole) { return; }
            const told = document.createElementNS('http://www.w3.org/2000/svg', 'title');
            told.textContent = text(whole);
            label.append(told);
        });
    }

    /* The cells of a heatmap: heads, and rows that begin with their names. */
    function cellsOf(plot, map) {
        const {xaxis, yaxis} = plot._fullLayout;
        const columns = named(xaxis.ticktext, listed(map.x)).map(text);
        const whole = wholeNames(plot);
        const names = named(whole.length ? whole : yaxis.ticktext, listed(map.y)).map(text);
        const rows = listed(map.z).map((values, at) => {
            const row = [names[at]].concat(listed(values));
            const addresses = listed(listed(map.customdata)[at]).map(maat.addressOfPoint);
            row.leadsTo = {0: addresses.find(Boolean)};
            return row;
        });
        return {heads: [title(plot, 'y')].concat(columns), rows};
    }

    function heads(plot) { return ['Series', title(plot, 'x'), title(plot, 'y')]; }

    /* All that a chart draws, as rows under their heads. */
    maat.chartRows = plot => {
        const found = heatmaps(plot).flatMap(map => {
            const cells = cellsOf(plot, map);
            return [cells.heads].concat(cells.rows);
        });
        const rows = rowsOf(plot);
        return rows.length ? found.concat([heads(plot)], rows) : found;
    };

    function tables(plot) {
        const made = heatmaps(plot).map(map => {
            const cells = cellsOf(plot, map);
            return table(cells.heads, cells.rows);
        });
        const rows = rowsOf(plot);
        if (rows.length) { made.push(table(heads(plot), rows)); }
        if (rows.length > MOST_ROWS) {
            const more = document.createElement('p');
            more.className = 'hint';
            more.textContent = `The first ${MOST_ROWS} of ${rows.length} points.`;
            made.push(more);
        }
        return made;
    }

    /* ---- keeping both true ---- */

    function fill(box) {
        const plot = box.querySelector('.js-plotly-plot');
        if (plot) { box.querySelector('.chart-table').replaceChildren(...tables(plot)); }
    }

    function tell(plot) {
        const box = plot.closest('.graph');
        plot.setAttribute('role', 'img');
        plot.setAttribute('aria-label', summary(plot));
        if (!box) { return; }
        box.classList.toggle('loading', waits(plot));
        box.classList.toggle('chart-empty', !lines(plot).length && !heatmaps(plot).length);
        box.classList.toggle('chart-failed', stateOf(plot) === 'error');
        if (box.classList.contains('as-table')) { fill(box); }
        if (!waits(plot)) { maat.zoomAsAsked(plot); }
    }

    /* Plotly forgets a figure's height when it fits the chart to its place, and a place without a
       height of its own is then empty. */
    function keepHeight(plot) {
        const box = plot.closest('.graph.own-height');
        if (box && !waits(plot)) { box.style.height = `${plot._fullLayout.height}px`; }
    }

    /* Plotly leaves a legend where it was when a chart's width changes, over what is drawn; names
       keep the room that they had. */
    function fitWidth(plot) {
        const { width } = plot._fullLayout, before = plot.maatWidth;
        plot.maatWidth = width;
        if (!before || before === width) { return; }
        if (plot.querySelector('.legend')) { window.Plotly.redraw(plot); }
        maat.fitNames(plot);
    }

    let waiting = false;
    function look() {
        waiting = false;
        document.querySelectorAll('.js-plotly-plot').forEach(plot => {
            if (plot.maatTold || !plot.on || !plot._fullLayout) { return; }
            plot.maatTold = true;
            const drawn = () => {
                tell(plot);
                nameRows(plot);
                keepHeight(plot);
                fitWidth(plot);
            };
            plot.on('plotly_afterplot', drawn);
            maat.leadOn(plot);
            maat.followZoom(plot);
            drawn();
        });
    }
    new MutationObserver(() => {
        if (!waiting) { waiting = true; requestAnimationFrame(look); }
    }).observe(document.documentElement, {childList: true, subtree: true});

    document.addEventListener('click', event => {
        const toggle = event.target.closest && event.target.closest('.chart-toggle');
        if (!toggle) { return; }
        const box = toggle.closest('.graph'), shown = box.classList.toggle('as-table');
        toggle.setAttribute('aria-pressed', String(shown));
        toggle.textContent = shown ? 'Chart' : 'Table';
        if (shown) { fill(box); }
    });
})();
