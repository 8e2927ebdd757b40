/* The layout that came with the HTML (first_visit.py): Dash gets it instead of asking for it. What
   only the browser knows is put in first: address, colours, the cluster of the last visit. So the
   frame stands as its callbacks would leave it, and those of the page need not wait for them. */
(() => {
    'use strict';

    const { maat } = window;
    const DEPENDENCIES = '/_dash-dependencies';
    const place = document.getElementById('first-layout');
    const answers = {};

    /* Calls `found(id, props)` for each component that has an id. */
    function each(part, found) {
        if (Array.isArray(part)) { part.forEach((one) => each(one, found)); }
        if (!part || !part.props) { return; }
        if (part.props.id) { found(part.props.id, part.props); }
        each(part.props.children, found);
    }

    /* The properties of the components of a layout by their ids, and those of its links. */
    function partsOf(layout) {
        const parts = {}, links = [];
        each(layout, (id, props) => {
            if (typeof id === 'string') { parts[id] = props; }
            if (id.to && (id.nav || id.words)) { links.push(props); }
        });
        return { parts, links };
    }

    maat.partsOf = partsOf;

    /* Nobody need ask for the clusters then, and the page has its first beat. */
    function chooseCluster(parts, links) {
        const { data } = parts.clusters;
        if (!data) { return; }
        const value = maat.firstCluster(data);
        const style = { display: data.length ? null : 'none' };
        Object.assign(parts['cluster-select'], { value, style });
        links.forEach((link) => { link.href = maat.linkWith(link.id.to, value); });
        parts.live.data = maat.firstBeat();
    }

    /* The page is that of the address already: the router of the pages has nothing to do. The
       frame asks who the visitor is as soon as it learns its path, unless that came too. */
    function settle(parts, links) {
        const { pathname, search, hash, href } = window.location;
        const known = parts['signed-out'].data === false;
        ['_pages_location', 'navigate', ...(known ? ['here'] : [])].forEach((id) => {
            Object.assign(parts[id], { pathname, search, hash, href });
        });
        links.filter((link) => link.id.nav).forEach((link) => {
            link.className = maat.navigationLook(link.id.nav, pathname);
        });
    }

    function filled(layout) {
        const { parts, links } = partsOf(layout);
        const scheme = document.documentElement.dataset.maatScheme;
        parts.mantine.forceColorScheme = scheme;
        parts.scheme.data = scheme;
        chooseCluster(parts, links);
        settle(parts, links);
        maat.noteShown(window.location.pathname);
        return parts;
    }

    function answerOf(layout) {
        const headers = { 'Content-Type': 'application/json' };
        return Promise.resolve(new Response(JSON.stringify(layout), { headers }));
    }

    /* Of an address for which Dash asks: the answer, once, if it has come already; else null. */
    maat.firstAnswer = (address) => {
        const name = Object.keys(answers).find((one) => address.endsWith(one));
        const answer = answers[name] || null;
        delete answers[name];
        return answer;
    };

    function begin() {
        const layout = JSON.parse(place.textContent);
        const parts = filled(layout);
        const dependencies = fetch(DEPENDENCIES);
        answers['/_dash-layout'] = answerOf(layout);
        answers[DEPENDENCIES] = dependencies.then((answer) => answer.clone());
        dependencies.then((answer) => answer.clone().json())
            .then((callbacks) => maat.askEarly(callbacks, parts), () => {});
    }

    if (place && place.textContent) { queueMicrotask(begin); } // after Maat's other scripts
})();
