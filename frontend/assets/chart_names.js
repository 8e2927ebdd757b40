/* The names beside the cells of a chart take the room that its cells leave: they are cut in their
   middle only as far as they must be. */
(() => {
    'use strict';

    const { maat } = window;
    const LEAST = 22, MOST = 60; // characters of a name; the least as in figures/matrix.py
    const pen = document.createElement('canvas').getContext('2d');

    function cut(name, most) {
        const half = Math.floor(most / 2);
        return name.length <= most ? name : `${name.slice(0, half - 1)}…${name.slice(-half)}`;
    }

    const escaped = (name) => name.replace(/&/g, '&amp;').replace(/</g, '&lt;')
        .replace(/>/g, '&gt;');

    const parts = (numbered) => maat.textOf(numbered).match(/^(\d+\. )([^]*)$/).slice(1);

    /* What changes in a layout of this meta in a chart so wide; null without names. */
    function fitting(meta, width) {
        if (!meta || !meta.row_names) { return null; }
        pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
        const rows = meta.row_names.map(parts);
        const widest = (most) => Math.max(
            ...rows.map(([, name]) => pen.measureText(cut(name, most)).width));
        const room = width - meta.least_pixels, least = widest(LEAST);
        let most = MOST;
        while (most > LEAST && widest(most) - least > room) { most -= 2; }
        return {
            left: meta.names_pixels + Math.ceil(widest(most) - least),
            ticktext: rows.map(([number, name]) => number + escaped(cut(name, most))),
        };
    }

    /* The figure with names as long as there is room for in its place. */
    maat.withNames = (place, figure) => {
        const { layout } = figure;
        const fit = fitting(layout && layout.meta, place.clientWidth);
        if (!fit) { return figure; }
        const margin = { ...layout.margin, l: fit.left };
        const yaxis = { ...layout.yaxis, ticktext: fit.ticktext };
        return { ...figure, layout: { ...layout, margin, yaxis } };
    };

    /* Fits the names of a chart again, once its width has changed. */
    maat.fitNames = (plot) => {
        const fit = fitting(plot.layout.meta, plot._fullLayout.width);
        if (!fit || fit.left === plot._fullLayout.margin.l) { return; }
        window.Plotly.relayout(plot, { 'margin.l': fit.left, 'yaxis.ticktext': fit.ticktext });
    };
})();
