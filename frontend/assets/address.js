/* Where one is: cluster, filters, sort and the like stand in the address, so that it shows everybody the same. What the visitor chose last is
   only the default where the address says nothing, and the address is then completed. */
(() => {
    'use strict';

    const { maat } = window;
    const OF_CLUSTER = /^\/(cluster|jobs|submit|rounds(\/[^/]+)?|simulate|sweeps)?$/;
    const FORM = /^\/(submit|simulate|sweeps)$/; // drawn again, it would lose what was typed
    const KEPT = 'maat-cluster';
    const NO_CLUSTER = 'none';
    const NEWEST_FIRST = '-submitted_at'; // the order of the job list where none is named
    const PAGE_OF_ALL = [[/^\/jobs\//, '/jobs'], [/^\/simulations\//, '/simulate'], [/^\/sweeps\//, '/sweeps']];
    let given; // the cluster that the page chose, not the visitor
    let ofPage = {}; // path: the cluster to which what stands there belongs, where the address does not say
    let shown = window.location.pathname + window.location.search;
    const { noUpdate } = maat;

    function last() { try { return localStorage.getItem(KEPT); } catch (forbidden) { return null; } }
    function keep(cluster) { try { localStorage.setItem(KEPT, cluster); } catch (forbidden) { /* then the first cluster is the default */ } }
    function inAddress() { return new URLSearchParams(window.location.search).get('cluster'); }
    function propsOf(id) { try { return window.dash_component_api.getLayout(id).props; } catch (absent) { return {}; } }
    function chosen() { const value = propsOf('cluster-select').value; return value === NO_CLUSTER ? null : value; }

    /* The path with the cluster, if it is the path of a page that shows one and names none. */
    function withCluster(path, cluster) {
        const url = new URL(path, window.location.origin);
        if (cluster && OF_CLUSTER.test(url.pathname) && !url.searchParams.has('cluster')) { url.searchParams.set('cluster', cluster); }
        return url.pathname + url.search + url.hash;
    }

    function replace(path) {
        window.history.replaceState(window.history.state, '', path);
        shown = path;
    }

    /* Puts what the page shows into its address without drawing it again; null and [] leave it out. */
    function setQuery(values) {
        const query = new URLSearchParams(window.location.search), cluster = values.cluster || query.get('cluster');
        const ordered = new URLSearchParams(cluster ? {cluster} : {});
        query.delete('cluster');
        Object.keys(values).forEach(name => { query.delete(name); });
        query.forEach((value, name) => { ordered.append(name, value); });
        Object.keys(values).filter(name => name !== 'cluster').forEach(name => {
            [].concat(values[name]).forEach(one => {
                if (one !== null && one !== undefined && one !== '') { ordered.append(name, one); }
            });
        });
        const text = ordered.toString(), path = window.location.pathname + (text ? `?${text}` : '');
        if (path !== window.location.pathname + window.location.search) { replace(path); }
        return noUpdate();
    }

    /* To another page, as a link does it: forwards in the history, and from its top. */
    function go(path) {
        window.history.pushState({}, '', withCluster(path, chosen()));
        window.dispatchEvent(new CustomEvent('_dashprivate_pushstate'));
    }

    /* From the page of one thing to that of all such things. */
    function pageOfAll(path) { return PAGE_OF_ALL.filter(one => one[0].test(path)).concat([[null, '/']])[0][1]; }

    /* Before the page router looks: the address is completed, and the cluster that it names is chosen. The router overlooks an address by
       which it came here itself, though filters have changed the page since. */
    function moved() {
        if (inAddress() && inAddress() !== propsOf('cluster-select').value) {
            given = inAddress();
            window.dash_clientside.set_props('cluster-select', {value: given});
        }
        const here = withCluster(window.location.href, chosen()), known = propsOf('_pages_location');
        window.history.replaceState(window.history.state, '', here);
        if (shown !== here && known.pathname === window.location.pathname && known.search === window.location.search) {
            window.dash_clientside.set_props('_pages_location', {search: known.search});
        }
        shown = here;
    }
    window.addEventListener('popstate', moved);
    window.addEventListener('_dashprivate_pushstate', () => { moved(); window.scrollTo(0, 0); });

    function linksOf(outputs, cluster) {
        return outputs.map(output => withCluster(output.id.to, cluster === NO_CLUSTER ? null : cluster));
    }

    maat.callbacks({
        /* The cluster of the address, by its id or its name, or that of what the page shows; else the one chosen last, if it is still there;
           else the first. While nobody knows which clusters there are, none is chosen. */
        clusterOf(data, now) {
            if (!data) { return [noUpdate(), noUpdate()]; }
            const inUrl = OF_CLUSTER.test(window.location.pathname), asked = inUrl ? inAddress() : ofPage[window.location.pathname];
            const there = wanted => data.filter(one => one.value === wanted || one.label === wanted)[0];
            const found = there(asked) || (!asked && (there(now) || there(last()) || data[0]));
            if (inUrl && asked && found && found.value !== asked) { setQuery({cluster: found.value}); }
            const value = found ? found.value : asked || NO_CLUSTER;
            if (value !== now) { given = value; }
            return [value === now ? noUpdate() : value, {display: data.length ? null : 'none'}];
        },

        /* What the address does not name was chosen by the visitor, who then goes there; a form stays as it is. */
        clusterOfPage(cluster) {
            const chooser = propsOf('cluster-select');
            if (!cluster) { return noUpdate(); }
            ofPage = {};
            ofPage[window.location.pathname] = cluster;
            if (chooser.value !== cluster && (chooser.data || []).some(one => one.value === cluster)) {
                given = cluster;
                window.dash_clientside.set_props('cluster-select', {value: cluster});
            }
            return noUpdate();
        },

        clusterInUrl(cluster) {
            const path = window.location.pathname, asked = inAddress(), visitor = cluster !== given;
            given = cluster;
            if (!cluster || cluster === NO_CLUSTER || cluster === asked) { return noUpdate(); }
            if (!OF_CLUSTER.test(path)) {
                if (visitor) { keep(cluster); }
                if (visitor && ofPage[path] && ofPage[path] !== cluster) { go(`${pageOfAll(path)}?cluster=${encodeURIComponent(cluster)}`); }
                return noUpdate();
            }
            if (!asked) { return setQuery({cluster}); }
            keep(cluster);
            if (FORM.test(path)) { return setQuery({cluster}); }
            const query = new URLSearchParams(window.location.search);
            query.set('cluster', cluster);
            go(/^\/rounds/.test(path) ? `/rounds?cluster=${encodeURIComponent(cluster)}` : `${path}?${query}`);
            return noUpdate();
        },

        /* Links of the frame, and of pages: to the cluster that is shown, also in a new tab. Each has its path in its id. */
        clusterLinks(cluster) { return linksOf(window.dash_clientside.callback_context.outputs_list, cluster); },
        pageLinks(cluster) { return linksOf(window.dash_clientside.callback_context.outputs_list, cluster); },

        rangeInUrl(range) { return setQuery({range}); },

        metricInUrl(metric) { return setQuery({metric}); },

        /* The rule of finish-time fairness; the first of the list needs no mention. */
        ruleInUrl(rule) { return setQuery({rule: rule === 'mean-of-ratios' ? null : rule}); },

        pageInUrl(page) { return setQuery({page: page > 1 ? page : null}); },

        comparisonInUrl(first, second, jobs) {
            return window.location.pathname.indexOf('/simulations/') === 0 ? setQuery({first, second, job: jobs || []}) : noUpdate();
        },

        /* The filters of the job list. */
        jobFilters(q, states, models, types) {
            const filters = {q: q || null, state: states || [], model: models || [], gpu_type: types || []};
            if (window.location.pathname === '/jobs') { setQuery(filters); }
            return filters;
        },

        /* How the grid asked for its rows. */
        sortInUrl(request) {
            const wish = request && (request.sortModel || [])[0];
            if (!wish || window.location.pathname !== '/jobs') { return noUpdate(); }
            const sort = (wish.sort === 'desc' ? '-' : '') + wish.colId;
            return setQuery({sort: sort === NEWEST_FIRST ? null : sort});
        }
    });

    maat.go = go;
})();
