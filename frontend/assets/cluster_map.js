/* Draws the cluster map: one square a GPU, squares of one job joined, nodes side by side, as large
   as the place allows. frontend/figures/cluster_map.py makes its data; it fetches nothing. Arrow
   keys walk over it, Enter opens what is under the focus. */
(() => {
    'use strict';

    const { maat } = window;
    const LARGEST = 96, NAMED = 12;  // pixels of a square; below the latter, nodes bear no name
    const NODE_NAME = 14, TYPE_NAME = 34, LETTER = 6.6, LINE = 12;
    const FEW_NODES = 60;  // of so many each is as wide as its name

    function make(tag, className, text) {
        const element = document.createElement(tag);
        element.className = className;
        if (text !== undefined) { element.textContent = text; }
        return element;
    }

    /* ---- elements ---- */

    function where(node, stretch) {
        const last = stretch.first + stretch.count - 1;
        const one = `GPU ${stretch.first}`, several = `GPUs ${stretch.first} to ${last}`;
        return `${stretch.count > 1 ? several : one} of ${node.name}, ${node.gpu_type}`;
    }

    function words(node, stretch) {
        const tenant = stretch.tenant ? `, tenant ${stretch.tenant}` : '';
        return `${stretch.name}, ${where(node, stretch)}${tenant}`;
    }

    function nodeLink(node) { return `/cluster?node=${encodeURIComponent(node.name)}`; }

    function drawStretch(node, stretch, types) {
        const link = make('a', `gpu-stretch gpu-${stretch.kind}`);
        link.href = stretch.job ? `/jobs/${encodeURIComponent(stretch.job)}` : nodeLink(node);
        link.tabIndex = -1;
        link.setAttribute('aria-label', words(node, stretch));
        link.style.setProperty('--count', stretch.count);
        link.maat = {node, stretch, paint(shade) {
            const look = `-${types.indexOf(node.gpu_type)}-${shade}`;
            if (link.maat.look === look) { return; }
            link.maat.look = look;
            link.style.setProperty('--fill', `var(--fill${look})`);
            link.style.setProperty('--ink', `var(--ink${look})`);
        }};
        if (stretch.kind === 'job') { link.maat.paint(stretch.shade); }
        return link;
    }

    function drawNode(node, types) {
        const element = make('div', 'gpu-node');
        element.setAttribute('role', 'group');
        const use = `${node.held} of ${node.gpu_count} ${node.gpu_type} in use`;
        element.setAttribute('aria-label', `${node.name}: ${use}`);
        element.appendChild(make('div', 'gpu-node-name', node.name));
        const row = element.appendChild(make('div', 'gpu-row'));
        node.stretches.forEach(stretch => {
            row.appendChild(drawStretch(node, stretch, types));
        });
        return element;
    }

    function sum(nodes, field) { return nodes.reduce((total, node) => total + node[field], 0); }

    /* `1 280 of 3 428 GPUs in use on 320 nodes` */
    function useWords(nodes) {
        const held = maat.count(sum(nodes, 'held')), all = maat.count(sum(nodes, 'gpu_count'));
        const unit = nodes.length === 1 ? 'node' : 'nodes';
        return `${held} of ${all} GPUs in use on ${maat.count(nodes.length)} ${unit}`;
    }

    function typeWords(type, nodes) {
        const out = sum(nodes, 'out'), absent = out ? `, ${maat.count(out)} out of service` : '';
        return `${type} · ${useWords(nodes)}${absent}`;
    }

    function drawAll(map) {
        const state = map.maat, types = state.types;
        state.elements = [];
        state.heads = {};
        const all = document.createDocumentFragment();
        types.forEach(type => {
            const places = state.nodes.map((_, place) => place)
                .filter(place => state.nodes[place].gpu_type === type);
            if (!places.length) { return; }
            const head = all.appendChild(make('div', 'gpu-type'));
            head.appendChild(make('span', 'swatch')).style.backgroundColor = state.colours[type];
            state.heads[type] = head.appendChild(make('span', ''));
            const box = all.appendChild(make('div', 'gpu-nodes'));
            places.forEach(place => {
                state.elements[place] = box.appendChild(drawNode(state.nodes[place], types));
            });
        });
        map.replaceChildren(all);
    }

    function drawChanged(map, places) {
        const state = map.maat;
        places.forEach(place => {
            const old = state.elements[place], links = Array.from(old.querySelectorAll('a'));
            const focused = links.indexOf(document.activeElement);
            const element = state.elements[place] = drawNode(state.nodes[place], state.types);
            element.maat = old.maat;
            old.replaceWith(element);
            if (focused >= 0) {
                const next = element.querySelectorAll('a');
                next[Math.min(focused, next.length - 1)].focus({preventScroll: true});
            }
        });
    }

    /* Sets the colours of the types if they changed: setting a style, even to what it is, makes the
       browser compute the styles of the whole map again. */
    function paint(map, looks) {
        const painted = JSON.stringify(looks);
        if (map.maat.painted === painted) { return; }
        map.maat.painted = painted;
        looks.types.forEach((type, at) => {
            type.shades.forEach((shade, number) => {
                map.style.setProperty(`--fill-${at}-${number}`, shade.fill);
                map.style.setProperty(`--ink-${at}-${number}`, shade.ink);
            });
        });
    }

    function say(map, drawing) {
        if (map.dataset.said === drawing.title + drawing.remedy && !map.maat) { return; }
        map.dataset.said = drawing.title + drawing.remedy;
        const state = make('div', `panel-state${drawing.failed ? ' failed' : ''}`);
        state.setAttribute('role', drawing.failed ? 'alert' : 'status');
        state.appendChild(make('div', 'state-title', drawing.title));
        state.appendChild(make('div', 'state-remedy', drawing.remedy));
        if (drawing.way) {
            const [words, path] = drawing.way;
            const link = state.appendChild(make('a', 'button-link primary', words));
            link.href = path;
        }
        map.maat = null;
        map.classList.remove('loading');
        map.replaceChildren(state);
        map.setAttribute('aria-label', 'Cluster map');
    }

    function tell(map) {
        const state = map.maat, nodes = state.nodes;
        state.types.forEach(type => {
            if (!state.heads[type]) { return; }
            const ofType = nodes.filter(node => node.gpu_type === type);
            state.heads[type].textContent = typeWords(type, ofType);
        });
        map.setAttribute('aria-label', `Cluster map: ${useWords(nodes)}. `
            + 'Arrow keys move over it, Enter opens a job or a node.');
    }

    /* ---- size ---- */

    /* How far nodes stand from each other. */
    function apart(size) { return size < NAMED ? {x: 6, y: 3} : {x: 8, y: 8}; }

    /* Infinity if a node is wider than the place. */
    function tallness(byType, size, width, named, wide) {
        return Object.keys(byType).reduce((height, type) => {
            let row = 0, rows = 1;
            byType[type].forEach(node => {
                const name = wide ? node.name.length * LETTER : 0;
                const needs = Math.max(node.gpu_count * size, name) + apart(size).x;
                if (node.gpu_count * size > width) { height = Infinity; }
                if (row && row + needs > width + apart(size).x) { rows += 1; row = 0; }
                row += needs;
            });
            return height + TYPE_NAME + rows * (size + (named ? NODE_NAME : 0) + apart(size).y);
        }, 0);
    }

    /* The largest square with which the map fits its place, with names of nodes or else without.
       If none fits it is the smallest, and the map scrolls. */
    function largest(byType, width, height, few, smallest) {
        const fits = (size, named) => tallness(byType, size, width, named, few) <= height;
        const nameFits = (node, size) => node.name.length * LETTER <= node.gpu_count * size;
        const roomy = size => few || Object.keys(byType).every(
            type => byType[type].every(node => nameFits(node, size)));
        for (let size = LARGEST; size >= NAMED; size -= 1) {
            if (fits(size, true) && roomy(size)) { return {size, named: true}; }
        }
        let size = LARGEST;
        while (size > smallest && !fits(size, false)) { size -= 1; }
        return {size, named: few};
    }

    function placeOf(map) { return {width: map.offsetWidth, height: map.clientHeight}; }

    function fit(map, place = placeOf(map)) {
        const state = map.maat;
        if (!state || !place.width) { return; }
        const shown = state.nodes.filter((_, at) => !state.elements[at].hidden), byType = {};
        const few = shown.length <= FEW_NODES;
        shown.forEach(node => {
            (byType[node.gpu_type] = byType[node.gpu_type] || []).push(node);
        });
        const width = place.width - 12, smallest = Number(map.dataset.smallest);
        const chosen = largest(byType, width, place.height, few, smallest);
        const size = chosen.size, named = chosen.named;
        map.style.setProperty('--square', `${size}px`);
        map.style.setProperty('--apart', `${apart(size).y}px ${apart(size).x}px`);
        map.classList.toggle('unnamed', !named);
        map.classList.toggle('few', few);
        state.size = size;
        state.elements.forEach(element => { nameStretches(element, size); });
        maat.shades(map, {moved: true});
    }

    /* How many lines a name takes if a line has so many letters. It breaks after hyphens and at
       spaces; Infinity if a part of it is too long. */
    function linesOf(name, letters) {
        let lines = 1, used = 0;
        (name.match(/[^-\s]*[-\s]*/g) || []).forEach(part => {
            if (part.trimEnd().length > letters) { lines = Infinity; }
            if (used && used + part.trimEnd().length > letters) { lines += 1; used = 0; }
            used += part.length;
        });
        return lines;
    }

    /* A name stands in its squares if it fits whole; else the pointer or the focus shows it. */
    function nameStretches(element, size) {
        element.querySelectorAll('a').forEach(link => {
            const stretch = link.maat.stretch, lines = Math.floor((size - 4) / LINE);
            const letters = Math.floor((stretch.count * size - 12) / LETTER);
            const fits = stretch.kind === 'job' && linesOf(stretch.name, letters) <= lines;
            const text = fits ? stretch.name : '';
            if (link.textContent !== text) {
                link.replaceChildren(...(text ? [make('span', 'gpu-name', text)] : []));
            }
        });
    }

    const sizes = new ResizeObserver(entries => {
        entries.forEach(entry => { fit(entry.target); });
    });

    /* ---- pointer and focus ---- */

    function tip() {
        let shown = document.getElementById('gpu-tip');
        if (!shown) {
            shown = document.body.appendChild(make('div', 'gpu-tip'));
            shown.id = 'gpu-tip';
            shown.setAttribute('aria-hidden', 'true');
        }
        return shown;
    }

    function light(map, link) {
        const job = link && link.maat.stretch.job;
        map.classList.toggle('dimmed', Boolean(job));
        map.querySelectorAll('a').forEach(one => {
            one.classList.toggle('lit', Boolean(job) && one.maat.stretch.job === job);
        });
        const box = tip();
        box.style.display = link ? 'block' : 'none';
        if (!link) { return; }
        const stretch = link.maat.stretch, at = link.getBoundingClientRect();
        box.replaceChildren(
            make('div', 'gpu-tip-name', stretch.name),
            make('div', 'caption', where(link.maat.node, stretch)));
        if (stretch.tenant) {
            box.appendChild(make('div', 'caption', `tenant ${stretch.tenant}`));
        }
        const left = Math.min(at.left, window.innerWidth - box.offsetWidth - 8);
        const node = link.closest('.gpu-node').getBoundingClientRect(); // its name stays in sight
        const above = node.top - box.offsetHeight - 6;
        box.style.left = `${Math.max(8, left)}px`;
        box.style.top = `${above > 0 ? above : at.bottom + 6}px`;
    }

    function at(event) { return event.target.closest && event.target.closest('.gpu-stretch'); }

    function mapOf(link) { return link.closest('.gpu-map'); }

    /* Nothing is lit and named any more, unless it has the focus. */
    function leave() {
        if (at({target: document.activeElement || document.body})) { return; }
        document.querySelectorAll('.gpu-map').forEach(map => {
            if (map.maat) { light(map, null); }
        });
        tip().style.display = 'none';  // of a map, too, that has gone with its page
    }

    document.addEventListener('mouseover', event => {
        const link = at(event);
        if (link) { light(mapOf(link), link); return; }
        if (tip().style.display === 'block') { leave(); }
    });
    document.addEventListener('focusin', event => {
        const link = at(event);
        if (!link) { return; }
        mapOf(link).querySelectorAll('a[tabindex="0"]').forEach(old => { old.tabIndex = -1; });
        link.tabIndex = 0;
        light(mapOf(link), link);
    });
    document.addEventListener('focusout', event => {
        const link = at(event);
        if (link && link.isConnected) { light(mapOf(link), null); }
        if (link && !link.isConnected) { setTimeout(leave, 0); }  // drawn again it has it again
    });
    document.addEventListener('scroll', () => {
        tip().style.display = 'none';
    }, {capture: true, passive: true});

    /* ---- keys ---- */

    function nearest(links, from, down) {
        const here = from.getBoundingClientRect();
        const middle = here.left + here.width / 2;
        let best = null;
        let least = Infinity;
        links.forEach(link => {
            const box = link.getBoundingClientRect();
            const apart = down ? box.top - here.bottom : here.top - box.bottom;
            if (apart < 0) { return; }
            const aside = Math.max(0, box.left - middle, middle - box.right);
            if (apart * 1000 + aside < least) { least = apart * 1000 + aside; best = link; }
        });
        return best;
    }

    document.addEventListener('keydown', event => {
        const from = at(event);
        if (!from || event.ctrlKey || event.metaKey || event.altKey) { return; }
        const links = Array.from(
            mapOf(from).querySelectorAll('.gpu-node:not([hidden]) .gpu-stretch'));
        const place = links.indexOf(from), down = event.key === 'ArrowDown';
        let to = {
            ArrowRight: links[place + 1],
            ArrowLeft: links[place - 1],
            Home: links[0],
            End: links[links.length - 1],
        }[event.key];
        if (down || event.key === 'ArrowUp') { to = nearest(links, from, down); }
        if (/^(Arrow|Home|End)/.test(event.key)) { event.preventDefault(); }
        if (to) { to.focus(); to.scrollIntoView({block: 'nearest'}); light(mapOf(to), to); }
    });

    /* ---- what a click opens ---- */

    document.addEventListener('click', event => {
        const link = at(event);
        if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) { return; }
        event.preventDefault();
        tip().style.display = 'none';
        if (!link.maat.stretch.job && maat.showNode(link.maat.node.name)) { return; }
        maat.go(link.getAttribute('href'));
    });

    /* ---- the callback ---- */

    /* Takes changes into the map. Returns the places that changed, and whether there are other
       nodes than before. */
    function take(map, drawing) {
        const old = map.maat || {nodes: [], types: [], digests: []};
        const nodes = old.nodes.slice(0, drawing.count);
        const digests = old.digests.slice(0, drawing.count);
        const places = Object.keys(drawing.nodes).map(Number);
        let others = old.nodes.length !== drawing.count;
        places.forEach(place => {
            const was = nodes[place], is = drawing.nodes[place];
            others = others || !was || was.name !== is.name
                || was.gpu_type !== is.gpu_type || was.gpu_count !== is.gpu_count;
            nodes[place] = is;
            digests[place] = drawing.digests[place];
        });
        const types = drawing.looks.types.map(type => type.name), colours = {};
        drawing.looks.types.forEach(type => { colours[type.name] = type.colour; });
        others = others || types.join() !== old.types.join();
        const { looks } = drawing, shades = looks.types.length ? looks.types[0].shades.length : 1;
        const { elements, heads, size, painted } = old;
        map.maat = {nodes, digests, types, colours, elements, heads, size, shades, painted};
        return {others, places};
    }

    function draw(map, drawing) {
        const taken = take(map, drawing);
        map.classList.remove('loading');
        paint(map, drawing.looks);
        if (taken.others) {
            const place = placeOf(map); // before what would have to be laid out for it
            drawAll(map);
            maat.seek(map);
            fit(map, place);
            sizes.observe(map);
        } else {
            drawChanged(map, taken.places);
            if (map.dataset.sought && taken.places.length) { maat.seek(map); fit(map); }
            const { elements, size } = map.maat;
            taken.places.forEach(place => { nameStretches(elements[place], size); });
            if (taken.places.length) { maat.shades(map, {moved: false}); }
        }
        const first = map.querySelector('a');
        if (first && !map.querySelector('a[tabindex="0"]')) { first.tabIndex = 0; }
        tell(map);
        return taken;
    }

    maat.callbacks({
        drawMap(drawing, id) {
            const skip = window.dash_clientside.no_update, map = document.getElementById(id);
            const withRows = window.dash_clientside.callback_context.outputs_list.length > 1;
            if (!drawing || !map) { return withRows ? [skip, skip, skip] : skip; }
            if (drawing.title) { say(map, drawing); return withRows ? [null, [], skip] : null; }
            const first = !map.maat, taken = draw(map, drawing);
            const known = {scheme: drawing.scheme, digests: map.maat.digests};
            if (!withRows) { return known; }
            maat.showFaults(map.maat.nodes);
            if (first) {
                const asked = new URLSearchParams(window.location.search).get('node');
                maat.showAskedNode(asked, map.maat.nodes);
            }
            return taken.others ? [known, map.maat.nodes, skip]
                : [known, skip, {update: taken.places.map(place => map.maat.nodes[place])}];
        }
    });

    maat.fitMap = fit;
})();
