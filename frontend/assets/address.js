/* Where one is: cluster, filters, sort and the like stand in the address, so that it shows everybody the same. What the visitor chose last is
   only the default where the address says nothing, and the address is then completed. */
(function () {
    'use strict';

    var OF_CLUSTER = /^\/(cluster|jobs|submit|rounds(\/[^/]+)?|simulate|sweeps)?$/;
    var FORM = /^\/(submit|simulate|sweeps)$/; // drawn again, it would lose what was typed
    var KEPT = 'maat-cluster';
    var NO_CLUSTER = 'none';
    var NEWEST_FIRST = '-submitted_at'; // the order of the job list where none is named
    var PAGE_OF_ALL = [[/^\/jobs\//, '/jobs'], [/^\/simulations\//, '/simulate'], [/^\/sweeps\//, '/sweeps']];
    var given; // the cluster that the page chose, not the visitor
    var ofPage = {}; // path: the cluster to which what stands there belongs, where the address does not say
    var shown = window.location.pathname + window.location.search;
    var noUpdate = function () { return window.dash_clientside.no_update; };

    function last() { try { return localStorage.getItem(KEPT); } catch (forbidden) { return null; } }
    function keep(cluster) { try { localStorage.setItem(KEPT, cluster); } catch (forbidden) { /* then the first cluster is the default */ } }
    function inAddress() { return new URLSearchParams(window.location.search).get('cluster'); }
    function propsOf(id) { try { return window.dash_component_api.getLayout(id).props; } catch (absent) { return {}; } }
    function chosen() { var value = propsOf('cluster-select').value; return value === NO_CLUSTER ? null : value; }

    /* The path with the cluster, if it is the path of a page that shows one and names none. */
    function withCluster(path, cluster) {
        var url = new URL(path, window.location.origin);
        if (cluster && OF_CLUSTER.test(url.pathname) && !url.searchParams.has('cluster')) { url.searchParams.set('cluster', cluster); }
        return url.pathname + url.search + url.hash;
    }

    function replace(path) {
        window.history.replaceState(window.history.state, '', path);
        shown = path;
    }

    /* Puts what the page shows into its address without drawing it again; null and [] leave it out. */
    function setQuery(values) {
        var query = new URLSearchParams(window.location.search), cluster = values.cluster || query.get('cluster');
        var ordered = new URLSearchParams(cluster ? {cluster: cluster} : {});
        query.delete('cluster');
        Object.keys(values).forEach(function (name) { query.delete(name); });
        query.forEach(function (value, name) { ordered.append(name, value); });
        Object.keys(values).filter(function (name) { return name !== 'cluster'; }).forEach(function (name) {
            [].concat(values[name]).forEach(function (one) {
                if (one !== null && one !== undefined && one !== '') { ordered.append(name, one); }
            });
        });
        var text = ordered.toString(), path = window.location.pathname + (text ? '?' + text : '');
        if (path !== window.location.pathname + window.location.search) { replace(path); }
        return noUpdate();
    }

    /* To another page, as a link does it: forwards in the history, and from its top. */
    function go(path) {
        window.history.pushState({}, '', withCluster(path, chosen()));
        window.dispatchEvent(new CustomEvent('_dashprivate_pushstate'));
    }

    /* From the page of one thing to that of all such things. */
    function pageOfAll(path) { return PAGE_OF_ALL.filter(function (one) { return one[0].test(path); }).concat([[null, '/']])[0][1]; }

    /* Before the page router looks: the address is completed, and the cluster that it names is chosen. The router overlooks an address by
       which it came here itself, though filters have changed the page since. */
    function moved() {
        if (inAddress() && inAddress() !== propsOf('cluster-select').value) {
            given = inAddress();
            window.dash_clientside.set_props('cluster-select', {value: given});
        }
        var here = withCluster(window.location.href, chosen()), known = propsOf('_pages_location');
        window.history.replaceState(window.history.state, '', here);
        if (shown !== here && known.pathname === window.location.pathname && known.search === window.location.search) {
            window.dash_clientside.set_props('_pages_location', {search: known.search});
        }
        shown = here;
    }
    window.addEventListener('popstate', moved);
    window.addEventListener('_dashprivate_pushstate', function () { moved(); window.scrollTo(0, 0); });

    function linksOf(outputs, cluster) {
        return outputs.map(function (output) { return withCluster(output.id.to, cluster === NO_CLUSTER ? null : cluster); });
    }

    window.dash_clientside = window.dash_clientside || {};
    window.dash_clientside.maat = Object.assign(window.dash_clientside.maat || {}, {
        /* The cluster of the address, by its id or its name, or that of what the page shows; else the one chosen last, if it is still there;
           else the first. While nobody knows which clusters there are, none is chosen. */
        clusterOf: function (data, now) {
            if (!data) { return [noUpdate(), noUpdate()]; }
            var inUrl = OF_CLUSTER.test(window.location.pathname), asked = inUrl ? inAddress() : ofPage[window.location.pathname];
            var there = function (wanted) { return data.filter(function (one) { return one.value === wanted || one.label === wanted; })[0]; };
            var found = there(asked) || (!asked && (there(now) || there(last()) || data[0]));
            if (inUrl && asked && found && found.value !== asked) { setQuery({cluster: found.value}); }
            var value = found ? found.value : asked || NO_CLUSTER;
            if (value !== now) { given = value; }
            return [value === now ? noUpdate() : value, {display: data.length ? null : 'none'}];
        },

        /* What the address does not name was chosen by the visitor, who then goes there; a form stays as it is. */
        clusterOfPage: function (cluster) {
            var chooser = propsOf('cluster-select');
            if (!cluster) { return noUpdate(); }
            ofPage = {};
            ofPage[window.location.pathname] = cluster;
            if (chooser.value !== cluster && (chooser.data || []).some(function (one) { return one.value === cluster; })) {
                given = cluster;
                window.dash_clientside.set_props('cluster-select', {value: cluster});
            }
            return noUpdate();
        },

        clusterInUrl: function (cluster) {
            var path = window.location.pathname, asked = inAddress(), visitor = cluster !== given;
            given = cluster;
            if (!cluster || cluster === NO_CLUSTER || cluster === asked) { return noUpdate(); }
            if (!OF_CLUSTER.test(path)) {
                if (visitor) { keep(cluster); }
                if (visitor && ofPage[path] && ofPage[path] !== cluster) { go(pageOfAll(path) + '?cluster=' + encodeURIComponent(cluster)); }
                return noUpdate();
            }
            if (!asked) { return setQuery({cluster: cluster}); }
            keep(cluster);
            if (FORM.test(path)) { return setQuery({cluster: cluster}); }
            var query = new URLSearchParams(window.location.search);
            query.set('cluster', cluster);
            go(/^\/rounds/.test(path) ? '/rounds?cluster=' + encodeURIComponent(cluster) : path + '?' + query);
            return noUpdate();
        },

        /* Links of the frame, and of pages: to the cluster that is shown, also in a new tab. Each has its path in its id. */
        clusterLinks: function (cluster) { return linksOf(window.dash_clientside.callback_context.outputs_list, cluster); },
        pageLinks: function (cluster) { return linksOf(window.dash_clientside.callback_context.outputs_list, cluster); },

        rangeInUrl: function (range) { return setQuery({range: range}); },

        metricInUrl: function (metric) { return setQuery({metric: metric}); },

        /* The rule of finish-time fairness; the first of the list needs no mention. */
        ruleInUrl: function (rule) { return setQuery({rule: rule === 'mean-of-ratios' ? null : rule}); },

        pageInUrl: function (page) { return setQuery({page: page > 1 ? page : null}); },

        comparisonInUrl: function (first, second, jobs) {
            return window.location.pathname.indexOf('/simulations/') === 0 ? setQuery({first: first, second: second, job: jobs || []}) : noUpdate();
        },

        /* The filters of the job list. */
        jobFilters: function (q, states, models, types) {
            var filters = {q: q || null, state: states || [], model: models || [], gpu_type: types || []};
            if (window.location.pathname === '/jobs') { setQuery(filters); }
            return filters;
        },

        /* How the grid asked for its rows. */
        sortInUrl: function (request) {
            var wish = request && (request.sortModel || [])[0];
            if (!wish || window.location.pathname !== '/jobs') { return noUpdate(); }
            var sort = (wish.sort === 'desc' ? '-' : '') + wish.colId;
            return setQuery({sort: sort === NEWEST_FIRST ? null : sort});
        }
    });

    window.maatGo = go;
})();
