/* What a part of a chart stands for. Its address is the `customdata` of its point
   (frontend/figures/links.py): a click opens it, the pointer marks all on the page that stands for
   the same. chart_words.js puts the addresses into the tables, where keys reach them. */
(() => {
    'use strict';

    const { maat } = window;
    const MOST_MARKS = 60, ROOM = 4, DOT = 14; // marks of a trace; pixels
    const MARKED_LINKS = 'a[href^="/jobs/"], a[href^="/rounds/"]';

    const isAddress = value => typeof value === 'string' && /^[/?#]/.test(value)
        && !value.startsWith('//');

    /* What an address stands for, on whichever cluster; null for none. */
    function meaning(address) {
        if (!address || address.startsWith('#')) { return address || null; }
        const url = new URL(address, window.location.origin), own = address.startsWith('?');
        url.searchParams.delete('cluster');
        return (own ? '' : url.pathname) + url.search;
    }

    /* The whole address of one that changes parameters of the page. */
    function whole(address) {
        if (!address.startsWith('?')) { return address; }
        const url = new URL(window.location.href), changed = new URL(address, url);
        new Set(changed.searchParams.keys()).forEach(name => {
            url.searchParams.delete(name);
            changed.searchParams.getAll(name).forEach(
                value => url.searchParams.append(name, value));
        });
        return url.pathname + url.search + changed.hash;
    }

    function open(address) {
        const [path, part] = whole(address).split('#');
        if (path) { maat.go(path); }
        if (part) { maat.showPart(part); }
    }

    /* Scrolls to a part of a page that may still have to come. */
    maat.showPart = (id, tries = 50) => {
        const found = document.getElementById(id);
        if (found && found.offsetHeight) {
            found.scrollIntoView({block: 'center'});
            if (found.matches('tr')) { maat.mark(`#${id}`); }
        }
        if (tries && (!found || tries > 44)) {
            setTimeout(() => maat.showPart(id, tries - 1), 100);
        }
    };

    /* ---- which point ---- */

    /* The address of a point: a heatmap's cell, or the point of another trace. */
    function addressOf(point) {
        const given = point.customdata;
        return isAddress(given) ? given : null;
    }

    /* Whether a bar is under the pointer: where bars are stacked all of a place are told. */
    function isUnder(plot, point, event) {
        const trace = plot.calcdata[point.curveNumber];
        const drawn = trace && trace[point.pointNumber];
        if (point.data.type !== 'bar' || !drawn) { return true; }
        const across = point.data.orientation === 'h', box = plot.getBoundingClientRect();
        const axis = across ? point.xaxis : point.yaxis;
        const at = (across ? event.clientX - box.left : event.clientY - box.top) - axis._offset;
        const ends = [axis.c2p(drawn.b), axis.c2p(drawn.b + drawn.s)];
        return at >= Math.min(...ends) && at <= Math.max(...ends);
    }

    function addressUnder(plot, event) {
        const found = (event.points || []).filter(point => addressOf(point));
        const under = found.filter(point => isUnder(plot, point, event.event));
        return under.length ? addressOf(under[0]) : null;
    }

    /* ---- marks ---- */

    function frame(plot, box) {
        const mark = document.createElement('div');
        mark.className = 'chart-mark';
        mark.style.left = `${box.left - ROOM}px`;
        mark.style.top = `${box.top - ROOM}px`;
        mark.style.width = `${box.right - box.left + 2 * ROOM}px`;
        mark.style.height = `${box.bottom - box.top + 2 * ROOM}px`;
        plot.appendChild(mark);
    }

    /* Pixels from the corner of the plot; null outside of its axes. */
    function place(axes, x, y) {
        const at = {x: axes.x.d2p(x), y: axes.y.d2p(y)};
        const inside = Object.keys(at).every(
            key => at[key] >= -1 && at[key] <= axes[key]._length + 1);
        return inside ? {x: at.x + axes.x._offset, y: at.y + axes.y._offset} : null;
    }

    function around(points) {
        const xs = points.map(point => point.x), ys = points.map(point => point.y);
        return {
            left: Math.min(...xs), right: Math.max(...xs),
            top: Math.min(...ys), bottom: Math.max(...ys),
        };
    }

    function markCells(plot, trace, axes, wanted) {
        trace.customdata.forEach((row, at) => {
            if (!Array.from(row).some(one => isAddress(one) && meaning(one) === wanted)) { return; }
            const half = Math.abs(axes.y.d2p(1) - axes.y.d2p(0)) / 2;
            const middle = axes.y.d2p(trace.y[at]) + axes.y._offset;
            const left = axes.x._offset, right = left + axes.x._length;
            frame(plot, {left, right, top: middle - half + ROOM, bottom: middle + half - ROOM});
        });
    }

    function markPoints(plot, trace, axes, wanted) {
        const points = [], x = Array.from(trace.x || []), y = Array.from(trace.y || []);
        Array.from(trace.customdata).forEach((one, at) => {
            const seen = isAddress(one) && meaning(one) === wanted && x[at] != null
                && place(axes, x[at], y[at]);
            if (seen) { points.push(seen); }
        });
        if (/lines/.test(trace.mode || 'lines') && points.length > 1) {
            frame(plot, around(points));
            return;
        }
        points.slice(0, MOST_MARKS).forEach(({x: left, y: top}) => {
            frame(plot, {
                left: left - DOT / 4, right: left + DOT / 4,
                top: top - DOT / 4, bottom: top + DOT / 4,
            });
        });
    }

    function markIn(plot, wanted) {
        (plot._fullData || []).forEach(trace => {
            const layout = plot._fullLayout;
            const axes = {
                x: layout[(trace.xaxis || 'x').replace('x', 'xaxis')],
                y: layout[(trace.yaxis || 'y').replace('y', 'yaxis')],
            };
            if (!trace.customdata || !axes.x || !axes.y) { return; }
            (trace.type === 'heatmap' ? markCells : markPoints)(plot, trace, axes, wanted);
        });
    }

    let marked = null;

    /* Marks what stands for the same as an address, in all charts but the one it comes from, on
       the cluster map and among the links of the page; null marks nothing. */
    maat.mark = (address, source = null) => {
        const wanted = meaning(address);
        if (wanted === marked) { return; }
        marked = wanted;
        document.querySelectorAll('.chart-mark').forEach(old => old.remove());
        document.querySelectorAll('.marked').forEach(old => old.classList.remove('marked'));
        if (wanted === null) { return; }
        document.querySelectorAll('.js-plotly-plot').forEach(plot => {
            if (plot !== source && plot.offsetHeight) { markIn(plot, wanted); }
        });
        const row = wanted.startsWith('#') && document.getElementById(wanted.slice(1));
        if (row) { row.classList.add('marked'); }
        document.querySelectorAll(MARKED_LINKS).forEach(link => {
            const same = meaning(link.getAttribute('href')) === wanted;
            if (same && link !== source) { link.classList.add('marked'); }
        });
    };

    function linkAt(event) { return maat.around(event.target, MARKED_LINKS); }

    ['mouseover', 'focusin'].forEach(kind => document.addEventListener(kind, event => {
        const link = linkAt(event), inPlot = maat.around(event.target, '.js-plotly-plot');
        if (link) { maat.mark(link.getAttribute('href'), link); } else if (!inPlot) {
            maat.mark(null);
        }
    }));

    /* ---- charts ---- */

    /* Makes a chart that has just been drawn for the first time lead somewhere. */
    maat.leadOn = plot => {
        let under = null;
        plot.on('plotly_hover', event => {
            under = addressUnder(plot, event);
            plot.classList.toggle('leads-on', Boolean(under));
            maat.mark(under, plot);
        });
        plot.on('plotly_unhover', () => {
            plot.classList.remove('leads-on');
            maat.mark(null);
        });
        plot.on('plotly_click', event => {
            const address = addressUnder(plot, event) || under;
            if (address) { open(address); }
        });
    };

    /* The address that a table shows for a point, else null. */
    maat.addressOfPoint = value => (isAddress(value) ? whole(value) : null);

    document.addEventListener('click', event => {
        const link = maat.around(event.target, '.chart-table a');
        if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) { return; }
        event.preventDefault();
        open(link.getAttribute('href'));
    });
})();
