/* What the browser does alone: colour scheme, heartbeat, drawing anew only what changed, keyboard, URL of filters, cluster map. It fetches
   only /api/v1/health. */
(function () {
    'use strict';

    var STALE_SECONDS = 15;
    var MOST_VEILS = 1200;
    var lastAnswer = Date.now();
    var shownPath = null;
    var beatsAstray = 0;
    var noUpdate = function () { return window.dash_clientside.no_update; };

    function effective(choice) {
        if (choice === 'light' || choice === 'dark') { return choice; }
        return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
    }

    function paint(scheme) {
        document.documentElement.dataset.maatScheme = scheme;
        document.body.dataset.agThemeMode = scheme;
    }

    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', function () {
        var chosen = document.querySelector('#scheme-choice input:checked');
        if (chosen && chosen.value === 'system') {
            var scheme = effective('system');
            paint(scheme);
            window.dash_clientside.set_props('mantine', {forceColorScheme: scheme});
            window.dash_clientside.set_props('scheme', {data: scheme});
        }
    });

    function span(seconds) {
        if (seconds < 60) { return Math.round(seconds) + ' s'; }
        if (seconds < 3600) { return Math.round(seconds / 60) + ' min'; }
        if (seconds < 86400) { return Math.round(seconds / 3600) + ' h'; }
        return Math.round(seconds / 86400) + ' d';
    }

    function freshness(health) {
        var worker = health.worker || {};
        var age = worker.last_round_age_seconds;
        if (worker.state === 'none' || age === null || age === undefined) { return ['no round yet', 'freshness waiting']; }
        if (worker.state === 'stale') { return ['stale · last round ' + span(age) + ' ago', 'freshness stale']; }
        return ['live · round ' + span(age) + ' ago', 'freshness live'];
    }

    /* Whether what is shown is not what the address names: that page was asked for in vain, and nothing else would ask for it again. */
    function astray() {
        beatsAstray = shownPath !== null && shownPath !== window.location.pathname && !window.maatBusy() ? beatsAstray + 1 : 0;
        return beatsAstray > 1;
    }

    function go(path) { window.dash_clientside.set_props('navigate', {href: path}); }

    function search(values) {
        var query = new URLSearchParams();
        Object.keys(values).forEach(function (name) {
            var value = values[name];
            (Array.isArray(value) ? value : [value]).forEach(function (one) {
                if (one !== null && one !== undefined && one !== '') { query.append(name, one); }
            });
        });
        var text = query.toString();
        return text ? '?' + text : '';
    }

    /* A request in flight when the filters change would be taken for the answer to the new ones: ask again after it. */
    function whenIdle(act) { setTimeout(function () { if (window.maatBusy()) { whenIdle(act); } else { act(); } }, 100); }

    function gridApi(id) {
        try { return window.dash_ag_grid.getApi(id); } catch (absent) { return null; }
    }

    /* Veils over every cell that the job at this point does not hold; none without a point. Again after each redraw. */
    function light(point) {
        var plot = document.querySelector('.cluster-map .js-plotly-plot');
        var cells = plot && plot.data && plot.data[0];
        if (!cells || !cells.customdata || cells.z.length * cells.z[0].length > MOST_VEILS) { return; }
        var row = point ? cells.y.indexOf(point.y) : -1;
        var job = row >= 0 ? cells.customdata[row][point.x] : null;
        var veil = getComputedStyle(document.documentElement).getPropertyValue('--card').trim();
        var shapes = [];
        cells.customdata.forEach(function (holders, y) {
            holders.forEach(function (holder, x) {
                if (job && holder !== job) {
                    shapes.push({type: 'rect', x0: x - 0.5, x1: x + 0.5, y0: y - 0.5, y1: y + 0.5, line: {width: 0}, layer: 'above', fillcolor: veil, opacity: 0.65});
                }
            });
        });
        if (shapes.length || (plot.layout.shapes || []).length) { window.Plotly.relayout(plot, {shapes: shapes}); }
    }

    window.dash_clientside = window.dash_clientside || {};
    window.dash_clientside.maat = {
        scheme: function (choice) {
            var scheme = effective(choice);
            paint(scheme);
            return [scheme, scheme];
        },

        heartbeat: async function (_beats, live) {
            var skip = noUpdate();
            try {
                var answer = await fetch('/api/v1/health', {headers: {Accept: 'application/json'}});
                if (!answer.ok && answer.status !== 503) { return [skip, 'no access (' + answer.status + ')', 'freshness stale']; }
                var health = await answer.json();
                lastAnswer = Date.now();
                if (astray()) { window.location.reload(); }
                var shown = freshness(health);
                var idle = !document.hidden && !window.maatBusy();
                return [live && !idle ? skip : {at: Date.now()}, shown[0], shown[1]];
            } catch (unreachable) {
                var silent = (Date.now() - lastAnswer) / 1000;
                return [skip, silent < STALE_SECONDS ? 'retrying' : 'no answer for ' + span(silent) + ', retrying', 'freshness stale'];
            }
        },

        toggleNavigation: function (_clicks, open) { return !open; },

        navigation: function (open) { return [{width: open === false ? 56 : 200, breakpoint: 0}, open === false ? 'navbar-closed' : '']; },

        markHere: function (path) {
            return window.dash_clientside.callback_context.outputs_list.map(function (output) {
                var icon = output.id.nav;
                var root = icon === 'overview' ? '/' : '/' + icon;
                var here = root === '/' ? path === '/' : path === root || (path || '').indexOf(root + '/') === 0;
                return 'nav-link' + (here || (icon === 'simulate' && (path || '').indexOf('/simulations') === 0) ? ' here' : '');
            });
        },

        metricInUrl: function (metric) {
            window.history.replaceState(window.history.state, '', window.location.pathname + search({metric: metric}));
            return noUpdate();
        },

        /* What to try of a setting; nothing can be tried of no setting. */
        exampleValues: function (name, examples) { return [examples[name] || '', !(name in examples)]; },

        openHelp: function () { return true; },

        /* The filters of the job list: into the URL without a new page, and the grid starts over. */
        jobFilters: function (q, states, models, types) {
            var filters = {q: q || null, state: states || [], model: models || [], gpu_type: types || []};
            if (window.location.pathname === '/jobs') { window.history.replaceState(window.history.state, '', '/jobs' + search(filters)); }
            return filters;
        },

        /* After the filters are stored: the rows are asked for with what is stored. */
        restartGrid: function (_filters, _cluster, id) {
            var api = gridApi(id);
            if (!api) { return noUpdate(); }
            var late = window.maatBusy();
            api.purgeInfiniteCache();
            if (late) { whenIdle(function () { api.refreshInfiniteCache(); }); }
            return noUpdate();
        },

        rangeInUrl: function (range) {
            window.history.replaceState(window.history.state, '', '/' + search({range: range}));
            return noUpdate();
        },

        comparisonInUrl: function (first, second, jobs) {
            var path = window.location.pathname;
            if (path.indexOf('/simulations/') === 0) {
                window.history.replaceState(window.history.state, '', path + search({first: first, second: second, job: jobs || []}));
            }
            return noUpdate();
        },

        clearFilters: function () { return ['', [], [], []]; },

        refreshGrid: function (_live, id) {
            var api = gridApi(id);
            if (api && api.getGridOption('rowModelType') === 'infinite') { api.refreshInfiniteCache(); }
            return noUpdate();
        },

        openOn: function (pressed) { return pressed ? true : noUpdate(); },

        openRound: function (clicked, rows) {
            if (rows && rows.length) { go('/rounds/' + rows[0].number); }
            return noUpdate();
        },

        /* One heatmap trace: the job under the pointer stays lit, the others fade. */
        lightJob: function (hover, _figure) {
            setTimeout(function () { light(hover && hover.points && hover.points[0]); }, 60);
            return noUpdate();
        }
    };

    window.maatGo = go;

    /* ---- drawing anew ---- */

    /* Dash builds whatever an answer draws from nothing (plotly/dash#3846): focus, selected text and a press half done are gone with
       what stood there. So an answer loses what stands there already. */
    window.maatOnlyChanged = function (asked, answer) {
        if ('_pages_content' in answer) { shownPath = asked.inputs.filter(function (input) { return input.property === 'pathname'; })[0].value; }
        Object.keys(answer).forEach(function (id) {
            var standing = id.charAt(0) === '_' || id.charAt(0) === '{' ? null : layoutOf(id);
            ['children', 'figure'].forEach(function (prop) {
                if (standing && prop in answer[id] && drawn(answer[id][prop]) === drawn(standing.props[prop])) { delete answer[id][prop]; }
            });
        });
    };

    /* getLayout knows nothing of what was left with its page, and throws. */
    function layoutOf(id) {
        try { return window.dash_component_api.getLayout(id); } catch (left) { return null; }
    }

    /* A button counts its presses in the layout, which draws nothing. */
    function drawn(part) { return JSON.stringify(part, function (name, value) { return /^n_clicks/.test(name) ? undefined : value; }); }

    /* What did change takes the focus with it: the control that does the same, if there is one, gets it; when a dialog is closed, the one
       by which it was opened. But not what the reader has left himself. */
    var focused = null, opener = null;
    document.addEventListener('focusin', function (event) {
        if (inDialog(event.target) && focused && !inDialog(focused)) { opener = focused; }
        focused = event.target;
    });
    document.addEventListener('focusout', function (event) {
        setTimeout(function () { if (focused === event.target && focused.isConnected && document.activeElement === document.body) { focused = null; } }, 0);
    });
    new MutationObserver(function () {
        if (!focused || focused.isConnected || document.activeElement !== document.body) { return; }
        var again = alike(focused) || (inDialog(focused) && opener && alike(opener));
        if (again) { again.focus({preventScroll: true}); } else { focused = null; }
    }).observe(document.documentElement, {childList: true, subtree: true});

    function inDialog(element) { return Boolean(element.closest('[role="dialog"]')); }

    function alike(element) {
        var name = ['id', 'href', 'aria-label'].filter(function (name) { return element.getAttribute(name); })[0];
        return name && document.querySelector(element.tagName + '[' + name + '=' + JSON.stringify(element.getAttribute(name)) + ']');
    }

    /* ---- keyboard ---- */

    var pending = null;
    var PLACES = {o: '/', c: '/cluster', j: '/jobs', r: '/rounds', s: '/simulate', w: '/sweeps', m: '/measurements'};

    function typing(target) {
        return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || (target.getAttribute && target.getAttribute('role') === 'combobox');
    }

    function focusSearch() {
        var box = document.getElementById('jobs-search');
        if (box) { box.focus(); box.select(); return; }
        go('/jobs?focus=search');
    }

    // dcc.Upload drops a file over its max_size without a word. It gets to see none where one is too large: its answer would cover the refusal.
    function checkSize(event) {
        var box = event.target.closest && event.target.closest('[id$="-upload"]');
        var files = Array.from((box && (event.dataTransfer || event.target).files) || []);
        if (!files.length) { return; }
        var most = Number(box.querySelector('[data-most-bytes]').dataset.mostBytes);
        var words = files.filter(function (file) { return file.size > most; }).map(function (file) {
            return file.name + ' has ' + (file.size / 1e6).toFixed(1) + ' MB, more than the ' + most / 1e6 + ' MB that a file may have. Choose a smaller file.';
        }).join(' ');
        var form = box.id.replace(/-upload$/, '');
        window.dash_clientside.set_props(form + '-csv-error', {children: words});
        if (!words) { return; }
        window.dash_clientside.set_props(form + '-text', {data: null});
        window.dash_clientside.set_props(form + '-file', {children: ''});
        event.stopPropagation();
        event.preventDefault();
        if (event.type === 'drop') { event.target.dispatchEvent(new DragEvent('dragleave', {bubbles: true})); } else { event.target.value = ''; }
    }
    document.addEventListener('change', checkSize, true);
    document.addEventListener('drop', checkSize, true);

    // Not by the button's own n_clicks: see presses() in routing.py.
    document.addEventListener('click', function (event) {
        var button = event.target.closest && event.target.closest('[data-press]');
        if (!button || button.disabled) { return; }
        window.dash_clientside.set_props(button.dataset.press, {data: Object.assign({at: Date.now()}, JSON.parse(button.dataset.what))});
    });

    document.addEventListener('keydown', function (event) {
        var form = event.target.closest && event.target.closest('[data-submit]');
        if (event.key === 'Enter' && form && !event.defaultPrevented) {
            var plain = event.target.tagName === 'INPUT' && event.target.getAttribute('aria-expanded') !== 'true' && !event.target.getAttribute('aria-haspopup');
            if (plain || event.ctrlKey || event.metaKey) {
                event.target.blur();
                setTimeout(function () { document.getElementById(form.dataset.submit).click(); }, 0);
                return;
            }
        }
        if (typing(event.target) || event.ctrlKey || event.metaKey || event.altKey) { return; }
        if (pending === 'g' && PLACES[event.key]) { pending = null; event.preventDefault(); go(PLACES[event.key]); return; }
        pending = event.key === 'g' ? 'g' : null;
        if (event.key === '/') { event.preventDefault(); focusSearch(); }
        if (event.key === 'n') { event.preventDefault(); go('/submit'); }
        if (event.key === '?') { event.preventDefault(); window.dash_clientside.set_props('help', {opened: true}); }
    });
})();
