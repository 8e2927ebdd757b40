/* The address holds cluster, filters, sort order and the like, so that it shows the same page to
   every visitor. The visitor's last choice is only the default for an address without one; the
   address is then completed. */
(() => {
    'use strict';

    const { maat } = window;
    const OF_CLUSTER = new RegExp(`^/(${[
        'cluster', 'jobs', 'submit', 'rounds(/[^/]+)?', 'usage', 'fairness', 'reports',
        'calibration', 'simulate', 'sweeps', 'admin',
    ].join('|')})?$`);
    const FORM = /^\/(submit|simulate|sweeps)$/; // drawn again, it would lose what was typed
    const KEPT = 'maat-cluster';
    const NO_CLUSTER = 'none';
    const EMPTY = ['', null, undefined];
    const NEWEST_FIRST = '-submitted_at'; // the order of the job list where none is named
    const PAGE_OF_ALL = [
        [/^\/jobs\//, '/jobs'],
        [/^\/simulations\//, '/simulate'],
        [/^\/sweeps\//, '/sweeps'],
        [/^\/experiments\//, '/experiments'],
    ];
    let heard; // the cluster of the last choice, the visitor's or not
    let given = []; // clusters that the page chose since, in their order
    let ofPage = {}; // path: the cluster of what the page shows, if the address does not name it
    let shown = window.location.pathname + window.location.search;
    const { noUpdate } = maat;

    function last() {
        try { return localStorage.getItem(KEPT); } catch (forbidden) { return null; }
    }

    function keep(cluster) {
        try {
            localStorage.setItem(KEPT, cluster);
        } catch (forbidden) { /* then the first cluster is the default */ }
    }

    function inAddress() { return new URLSearchParams(window.location.search).get('cluster'); }

    function propsOf(id) {
        try { return window.dash_component_api.getLayout(id).props; } catch (absent) { return {}; }
    }

    function chosen() {
        const value = propsOf('cluster-select').value;
        return value === NO_CLUSTER ? null : value;
    }

    /* The path with the cluster, if it is the path of a page that shows one and names none. */
    function withCluster(path, cluster) {
        const url = new URL(path, window.location.origin);
        if (cluster && OF_CLUSTER.test(url.pathname) && !url.searchParams.has('cluster')) {
            url.searchParams.set('cluster', cluster);
        }
        return url.pathname + url.search + url.hash;
    }

    function replace(path) {
        window.history.replaceState(window.history.state, '', path);
        shown = path;
    }

    /* Puts what the page shows into its address and draws nothing; null and [] are left out. */
    function setQuery(values) {
        const query = new URLSearchParams(window.location.search);
        const cluster = values.cluster || query.get('cluster');
        const ordered = new URLSearchParams(cluster ? {cluster} : {});
        query.delete('cluster');
        Object.keys(values).forEach(name => { query.delete(name); });
        query.forEach((value, name) => { ordered.append(name, value); });
        Object.keys(values).filter(name => name !== 'cluster').forEach(name => {
            [].concat(values[name]).forEach(one => {
                if (one !== null && one !== undefined && one !== '') { ordered.append(name, one); }
            });
        });
        const text = ordered.toString();
        const path = window.location.pathname + (text ? `?${text}` : '');
        if (path !== window.location.pathname + window.location.search) { replace(path); }
        return noUpdate();
    }

    /* Whether the visitor has made a choice, and not the page. The page may have made several, of
       which each comes as a change of the choice, or only the last. */
    function isVisitors(cluster) {
        const place = given.indexOf(cluster);
        const isOurs = place >= 0 || cluster === heard;
        given = given.slice(place + 1);
        heard = cluster;
        return !isOurs;
    }

    /* To another page, as a link does it: forwards in the history, and from its top. */
    function go(path) {
        window.history.pushState({}, '', withCluster(path, chosen()));
        window.dispatchEvent(new CustomEvent('_dashprivate_pushstate'));
    }

    /* From the page of one thing to that of all such things. */
    function pageOfAll(path) {
        return PAGE_OF_ALL.filter(one => one[0].test(path)).concat([[null, '/']])[0][1];
    }

    /* Before the page router looks, completes the address and chooses the cluster that it names.
       The router overlooks an address by which it came here itself, even if filters have changed
       the page since. */
    function moved() {
        if (inAddress() && inAddress() !== propsOf('cluster-select').value) {
            given.push(inAddress());
            window.dash_clientside.set_props('cluster-select', {value: inAddress()});
        }
        const here = withCluster(window.location.href, chosen());
        const known = propsOf('_pages_location');
        window.history.replaceState(window.history.state, '', here);
        const { pathname, search } = window.location;
        if (shown !== here && known.pathname === pathname && known.search === search) {
            window.dash_clientside.set_props('_pages_location', {search: known.search});
        }
        shown = here;
    }
    window.addEventListener('popstate', moved);
    window.addEventListener('_dashprivate_pushstate', () => { moved(); window.scrollTo(0, 0); });

    /* This page of another cluster, with its filters. Rounds are numbered for each cluster. */
    function hereWith(cluster) {
        const path = window.location.pathname;
        if (/^\/rounds/.test(path)) { return `/rounds?cluster=${encodeURIComponent(cluster)}`; }
        const query = new URLSearchParams(window.location.search);
        query.set('cluster', cluster);
        return `${path}?${query}`;
    }

    function linkTo(cluster) {
        const props = {
            href: hereWith(cluster.value), children: cluster.label, className: 'button-link',
        };
        return { namespace: 'dash_html_components', type: 'A', props };
    }

    function linksOf(outputs, cluster) {
        return outputs.map(output => maat.linkWith(output.id.to, cluster));
    }

    /* The cluster of the address, by its id or its name, or that of what the page shows; else the
       last choice, if it still exists; else the first. */
    function clusterAmong(data, now) {
        const path = window.location.pathname, inUrl = OF_CLUSTER.test(path);
        const asked = inUrl ? inAddress() : ofPage[path];
        const there = wanted => (
            data.filter(one => one.value === wanted || one.label === wanted)[0]
        );
        const found = there(asked) || (!asked && (there(now) || there(last()) || data[0]));
        if (inUrl && asked && found && found.value !== asked) {
            setQuery({cluster: found.value});
        }
        return found ? found.value : (data.length && asked) || NO_CLUSTER;
    }

    maat.callbacks({
        /* Before the list of clusters has come, none is chosen. */
        clusterOf(data, now) {
            if (!data) { return [noUpdate(), noUpdate()]; }
            const value = clusterAmong(data, now);
            if (value !== now) { given.push(value); }
            return [value === now ? noUpdate() : value, {display: data.length ? null : 'none'}];
        },

        /* A cluster that the address does not name is the visitor's choice: the visitor then goes
           there. A form stays as it is. */
        clusterOfPage(cluster) {
            const chooser = propsOf('cluster-select');
            if (!cluster) { return noUpdate(); }
            ofPage = {};
            ofPage[window.location.pathname] = cluster;
            const offered = (chooser.data || []).some(one => one.value === cluster);
            if (chooser.value !== cluster && offered) {
                given.push(cluster);
                window.dash_clientside.set_props('cluster-select', {value: cluster});
            }
            return noUpdate();
        },

        clusterInUrl(cluster) {
            const path = window.location.pathname, asked = inAddress();
            const visitor = isVisitors(cluster);
            if (!cluster || cluster === NO_CLUSTER || cluster === asked) { return noUpdate(); }
            if (!OF_CLUSTER.test(path)) {
                if (visitor) { keep(cluster); }
                if (visitor && ofPage[path] && ofPage[path] !== cluster) {
                    go(`${pageOfAll(path)}?cluster=${encodeURIComponent(cluster)}`);
                }
                return noUpdate();
            }
            if (!asked) { return setQuery({cluster}); }
            keep(cluster);
            if (FORM.test(path)) { return setQuery({cluster}); }
            go(hereWith(cluster));
            return noUpdate();
        },

        /* Says, in place of a page, that its address names a cluster that there is none of. */
        unknownCluster(cluster, data, path) {
            const offered = data || [], isShown = OF_CLUSTER.test(path || '');
            const isKnown = offered.some((one) => one.value === cluster || one.label === cluster);
            const isUnknown = offered.length && isShown && cluster === inAddress() && !isKnown;
            return isUnknown ? [false, `“${cluster}”`, offered.map(linkTo)] : [true, '', []];
        },

        /* Links of the frame and of pages lead to the cluster that is shown, also in a new tab.
           Each has its path in its id. */
        clusterLinks(cluster) {
            return linksOf(window.dash_clientside.callback_context.outputs_list, cluster);
        },
        pageLinks(cluster) {
            return linksOf(window.dash_clientside.callback_context.outputs_list, cluster);
        },

        /* The kind of text of the submit form; YAML needs no mention. */
        textInUrl(kind) { return setQuery({text: kind === 'yaml' ? null : kind}); },
        originOf: () => window.location.origin,

        rangeInUrl(range) { return setQuery({range}); },

        /* What the rows of the use are; tenants need no mention. */
        usageInUrl(by) { return setQuery({by: by === 'tenant' ? null : by}); },

        /* The period of a report; this week needs no mention. The calendar shows if days count. */
        periodInUrl(period, days) {
            const [from, to] = period === 'days' ? days || [] : [];
            const named = period === 'this-week' || (from && to) ? null : period;
            setQuery({period: named, from: to ? from : null, to: from ? to : null});
            return period === 'days' ? {} : {display: 'none'};
        },

        /* The cluster of which the fields of What if need nodes, once they are opened. */
        whatIfOf(opened, cluster, known) {
            const isMissing = opened && cluster && cluster !== NO_CLUSTER && cluster !== known;
            return isMissing ? cluster : noUpdate();
        },

        /* The question; parameters as `policy_parameter=name=value`, once they have fields. */
        whatIfInUrl(drain, add, policy, placer, stay, moves, values, ids) {
            if (window.location.pathname !== '/cluster') { return noUpdate(); }
            const written = {};
            [['policy', policy], ['placer', placer]].forEach(([kind, name]) => {
                const given = ids.map((id, index) => ({...id, value: values[index]}))
                    .filter(one => one.of === `${kind}:${name}` && !EMPTY.includes(one.value))
                    .map(one => `${one.name}=${one.value}`);
                const isDrawn = ids.some(id => id.of.startsWith(`${kind}:`));
                if (!name || isDrawn) { written[`${kind}_parameter`] = given; }
            });
            const typed = {add: add || null, stay: stay || null, moves: moves || null};
            const asked = {drain: drain || [], policy, placer, ...typed, ...written};
            maat.noteForm(asked);
            return setQuery(asked);
        },

        metricInUrl(metric) { return setQuery({metric}); },

        /* Which kind of experiment is described; the first needs no mention. */
        kindInUrl(kind) { return setQuery({kind: kind === 'autoscaling' ? null : kind}); },

        /* The rule of finish-time fairness; the first of the list needs no mention. */
        ruleInUrl(rule) { return setQuery({rule: rule === 'mean-of-ratios' ? null : rule}); },

        uploadsInUrl(profiles, trace, variability, interference) {
            return setQuery({profiles, trace, variability, interference});
        },

        pageInUrl(page) { return setQuery({page: page > 1 ? page : null}); },

        /* What the matrix of a round shows; its first page does again. */
        matrixInUrl(q, sort) {
            setQuery({q: q || null, sort: sort === 'decided' ? null : sort, page: null});
            return 1;
        },

        tenantInUrl(tenant) {
            const shows = window.location.pathname === '/reports';
            return shows ? setQuery({tenant: tenant || null}) : noUpdate();
        },

        comparisonInUrl(first, second, jobs) {
            const compares = window.location.pathname.indexOf('/simulations/') === 0;
            return compares ? setQuery({first, second, job: jobs || []}) : noUpdate();
        },

        /* The filters of the job list. */
        jobFilters(q, states, models, types, tenants, owner, days, labels) {
            const [from, to] = days || [], whole = Boolean(from && to);
            if (from && !to) { return noUpdate(); } // the second day is still to be chosen
            const filters = {
                q: q || null, state: states || [], model: models || [], gpu_type: types || [],
                tenant: tenants || [], owner: owner || null,
                label: (labels || []).filter((label) => /^[^=\s]+=[^=\s]+$/.test(label)),
            };
            const first = whole ? from : null, last = whole ? to : null;
            if (window.location.pathname === '/jobs') {
                setQuery({ ...filters, from: first, to: last });
            }
            return { ...filters, first, last };
        },

        /* How the grid asked for its rows. */
        sortInUrl(request) {
            const wish = request && (request.sortModel || [])[0];
            if (!wish || window.location.pathname !== '/jobs') { return noUpdate(); }
            const sort = (wish.sort === 'desc' ? '-' : '') + wish.colId;
            return setQuery({sort: sort === NEWEST_FIRST ? null : sort});
        }
    });

    /* The cluster with which a page comes to be; its address then names it. */
    maat.firstCluster = (data) => {
        heard = clusterAmong(data, null);
        if (heard !== NO_CLUSTER && OF_CLUSTER.test(window.location.pathname) && !inAddress()) {
            setQuery({cluster: heard});
        }
        return heard;
    };

    /* Where a link to a page leads while this cluster is shown. */
    maat.linkWith = (path, cluster) => withCluster(path, cluster === NO_CLUSTER ? null : cluster);

    maat.go = go;
    maat.setQuery = setQuery;
})();
