/* Gives each job on the cluster map one shade of its type's colour, unlike those of the jobs at its
   sides, above and below. The browser does it, because the width decides who stands above whom. */
(() => {
    'use strict';

    const { maat } = window;
    const BESIDE = 10;  // pixels between nodes that stand side by side; more is no neighbourhood

    const GAP = 2;  // pixels between two stretches, as in maat.css

    /* Remembers where each node stands. To read it has the browser lay out the whole map, so it is
       read only when nodes have moved. */
    function locate(nodes) {
        nodes.forEach(node => {
            const { left, top } = node.querySelector('.gpu-row').getBoundingClientRect();
            node.maat = {left, top: Math.round(top)};
        });
    }

    /* A box of the drawing for every stretch of GPUs. Those of one job share their `tint`: the
       shade and the neighbours of the job. `size`: of a square, in pixels. */
    function boxes(nodes, size) {
        const tints = new Map();
        return nodes.flatMap(node => Array.from(node.querySelectorAll('.gpu-job'), link => {
            const { stretch } = link.maat, whose = stretch.job || link;
            if (!tints.has(whose)) {
                tints.set(whose, {shade: stretch.shade, near: new Set()});
            }
            const left = node.maat.left + stretch.first * size;
            const right = left + stretch.count * size - GAP;
            return {link, top: node.maat.top, left, right, tint: tints.get(whose)};
        }));
    }

    function rowsOf(all) {
        const rows = new Map();
        all.forEach(box => {
            if (!rows.has(box.top)) { rows.set(box.top, []); }
            rows.get(box.top).push(box);
        });
        return Array.from(rows.keys()).sort((one, other) => one - other).map(top => rows.get(top));
    }

    function join({tint: one}, {tint: other}) {
        if (one === other) { return; }
        one.near.add(other);
        other.near.add(one);
    }

    /* Neighbours know each other afterwards. Boxes of a row stand from left to right. */
    function meet(rows) {
        rows.forEach((row, number) => {
            row.forEach((box, place) => {
                const previous = row[place - 1];
                if (place && box.left - previous.right <= BESIDE) { join(previous, box); }
            });
            const above = rows[number - 1] || [];
            let from = 0;
            row.forEach(box => {
                while (from < above.length && above[from].right <= box.left) { from += 1; }
                for (let at = from; at < above.length && above[at].left < box.right; at += 1) {
                    join(above[at], box);
                }
            });
        });
    }

    /* The shade that fewest of the neighbours that have one have: its own, or the next one. */
    function rarest(tint, shades, settled) {
        const used = new Array(shades).fill(0);
        let best = tint.shade;
        tint.near.forEach(other => { if (settled.has(other)) { used[other.shade] += 1; } });
        for (let step = 1; step < shades; step += 1) {
            const shade = (tint.shade + step) % shades;
            if (used[shade] < used[best]) { best = shade; }
        }
        return best;
    }

    /* Settles the shades, the job with most neighbours first: those after it have few. Jobs that
       are spread over far nodes can touch more jobs than there are shades. */
    function tellApart(tints, shades) {
        const settled = new Set();
        tints.sort((one, other) => other.near.size - one.near.size).forEach(tint => {
            tint.shade = rarest(tint, shades, settled);
            settled.add(tint);
        });
    }

    /* `moved`: whether nodes stand elsewhere than when this was called last. */
    maat.shades = (map, {moved}) => {
        const { shades, size } = map.maat;
        map.querySelectorAll('.gpu-nodes').forEach(place => {
            const nodes = Array.from(place.querySelectorAll('.gpu-node:not([hidden])'));
            if (moved || nodes.some(node => !node.maat)) { locate(nodes); }
            const all = boxes(nodes, size);
            meet(rowsOf(all));
            tellApart(Array.from(new Set(all.map(box => box.tint))), shades);
            all.forEach(box => { box.link.maat.paint(box.tint.shade); });
        });
    };
})();
