/* Which shade of its type's colour each job has on the cluster map: its own, unless a neighbour at its side, above or below has the same.
   Who stands above whom follows from the width there is, so the browser decides. */
(() => {
    'use strict';

    const { maat } = window;
    const BESIDE = 10;  // pixels between nodes that stand side by side; more is no neighbourhood
    const MOST_PASSES = 30;

    function boxes(links) {
        return links.map(link => {
            const at = link.getBoundingClientRect();
            return {link, top: Math.round(at.top), left: at.left, right: at.right, near: [], shade: link.maat.stretch.shade};
        });
    }

    function rowsOf(all) {
        const rows = new Map();
        all.forEach(box => { rows.set(box.top, (rows.get(box.top) || []).concat([box])); });
        return Array.from(rows.keys()).sort((one, other) => one - other).map(top => rows.get(top));
    }

    function join(one, other) { one.near.push(other); other.near.push(one); }

    /* Neighbours know each other afterwards. Boxes of a row stand from left to right. */
    function meet(rows) {
        rows.forEach((row, number) => {
            row.forEach((box, place) => { if (place && box.left - row[place - 1].right <= BESIDE) { join(row[place - 1], box); } });
            const above = rows[number - 1] || [];
            let from = 0;
            row.forEach(box => {
                while (from < above.length && above[from].right <= box.left) { from += 1; }
                for (let at = from; at < above.length && above[at].left < box.right; at += 1) { join(above[at], box); }
            });
        });
    }

    function alike(box) { return box.near.some(other => other.shade === box.shade); }

    /* The shade that fewest neighbours have; of those the next one after its own, a later one in later passes, so that no two swap for ever. */
    function rarest(box, shades, pass) {
        const used = new Array(shades).fill(0);
        let best = box.shade;
        box.near.forEach(other => { used[other.shade] += 1; });
        for (let step = 1; step < shades; step += 1) {
            const shade = (box.shade + step + pass) % shades;
            if (used[shade] < used[best]) { best = shade; }
        }
        return used[best] < used[box.shade] || !pass ? best : (box.shade + 1 + pass) % shades;
    }

    /* Gives every box a shade that none of its neighbours has: stretches side by side in rows are a planar map, for which four would do. */
    function tellApart(all, shades) {
        for (let pass = 0; pass < MOST_PASSES; pass += 1) {
            const wrong = all.filter(alike);
            if (!wrong.length) { return; }
            wrong.forEach(box => { if (alike(box)) { box.shade = rarest(box, shades, pass); } });
        }
    }

    maat.shades = (map, shades) => {
        map.querySelectorAll('.gpu-nodes').forEach(place => {
            const all = boxes(Array.from(place.querySelectorAll('.gpu-job')));
            meet(rowsOf(all));
            tellApart(all, shades);
            all.forEach(box => { box.link.maat.paint(box.shade); });
        });
    };
})();
