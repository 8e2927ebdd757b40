/* What can be done with every chart: save it as a picture or as CSV, and choose a span of its x
   axis by dragging. All charts of the page that can be zoomed show the same span; it is in the
   address. */
(() => {
    'use strict';

    const { maat } = window;
    const ZOOM = 'zoom', BETWEEN = '~';
    const FORMULA = /^[=+\-@\t\r]/; // what a spreadsheet would compute
    const coarse = matchMedia('(pointer: coarse)');
    let setting = false; // while this script zooms

    /* ---- files ---- */

    function fileName(plot, kind) {
        const card = plot.closest('.card'), title = card && card.querySelector('.card-title');
        const words = (title ? title.textContent : 'chart').toLowerCase();
        return `${words.replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '')}.${kind}`;
    }

    function save(name, address) {
        const link = document.createElement('a');
        link.href = address;
        link.download = name;
        link.click();
    }

    function cell(value) {
        const text = value === null || value === undefined ? '' : String(value);
        const safe = typeof value === 'string' && FORMULA.test(text) ? `'${text}` : text;
        return /[",\r\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
    }

    function saveData(plot) {
        const lines = maat.chartRows(plot).map(row => row.map(cell).join(','));
        const blob = new Blob([`${lines.join('\r\n')}\r\n`], {type: 'text/csv;charset=utf-8'});
        const address = URL.createObjectURL(blob);
        save(fileName(plot, 'csv'), address);
        setTimeout(() => URL.revokeObjectURL(address), 1000);
    }

    async function savePicture(plot) {
        const card = plot.closest('.card') || document.body;
        const ground = getComputedStyle(card).backgroundColor;
        const layout = {...plot.layout, paper_bgcolor: ground};
        const {offsetWidth: width, offsetHeight: height} = plot;
        const drawn = {data: plot.data, layout};
        save(fileName(plot, 'png'),
            await window.Plotly.toImage(drawn, {format: 'png', width, height, scale: 2}));
    }

    const TOOLS = {csv: saveData, png: savePicture, all: () => zoomTo(null)};

    document.addEventListener('click', event => {
        const button = maat.around(event.target, '.chart-tools [data-tool]');
        const plot = button && button.closest('.graph').querySelector('.js-plotly-plot');
        if (plot) { TOOLS[button.dataset.tool](plot); }
    });

    /* ---- zoom ---- */

    function canZoom(plot) { return Boolean(plot.layout && (plot.layout.meta || {}).zooms); }

    function axes(plot) {
        return Object.keys(plot._fullLayout).filter(key => /^xaxis\d*$/.test(key));
    }

    function asked() {
        const text = new URLSearchParams(window.location.search).get(ZOOM) || '';
        const ends = text.split(BETWEEN);
        if (ends.length !== 2 || !ends[0] || !ends[1]) { return null; }
        return ends.map(end => (/^-?[\d.]+$/.test(end) ? Number(end) : end));
    }

    function apply(plot, span) {
        const changes = {};
        axes(plot).forEach(axis => {
            const { _rangeInitial0: from, _rangeInitial1: to } = plot._fullLayout[axis];
            const back = from === undefined ? null : [from, to];
            if (span || back) { changes[`${axis}.range`] = span || back; } else {
                changes[`${axis}.autorange`] = true;
            }
        });
        setting = true;
        return window.Plotly.relayout(plot, changes).finally(() => { setting = false; });
    }

    function told(span) {
        document.documentElement.classList.toggle('zoomed', Boolean(span));
        maat.setQuery({[ZOOM]: span && span.map(end => (
            typeof end === 'number' ? Number(end.toPrecision(8)) : String(end).slice(0, 19)
        )).join(BETWEEN)});
    }

    async function zoomTo(span, source = null) {
        told(span);
        const plots = Array.from(document.querySelectorAll('.js-plotly-plot'));
        for (const plot of plots.filter(one => one !== source && canZoom(one))) {
            await apply(plot, span);
        }
    }

    /* Follows a chart that has just been drawn for the first time. */
    maat.followZoom = plot => {
        plot.on('plotly_relayout', changes => {
            if (setting || !canZoom(plot)) { return; }
            const names = Object.keys(changes);
            const [from] = names.filter(name => /^xaxis\d*\.range\[0\]$/.test(name));
            const whole = names.some(name => /^xaxis\d*\.autorange$/.test(name))
                || names.some(name => /^xaxis\d*\.range$/.test(name));
            if (from) { zoomTo([changes[from], changes[from.replace('[0]', '[1]')]], plot); }
            if (!from && whole) { zoomTo(null, plot); }
        });
    };

    /* After the first data of a chart: shows the span of the address, and leaves a finger's drags
       to the page. */
    maat.zoomAsAsked = plot => {
        if (!canZoom(plot)) { return; }
        const box = plot.closest('.graph');
        if (box) { box.classList.add('zooms'); }
        if (coarse.matches && plot._fullLayout.dragmode) {
            window.Plotly.relayout(plot, {dragmode: false});
        }
        if (plot.maatZoomed) { return; }
        plot.maatZoomed = true;
        const span = asked();
        document.documentElement.classList.toggle('zoomed', Boolean(span));
        if (span) { apply(plot, span); }
    };
})();
