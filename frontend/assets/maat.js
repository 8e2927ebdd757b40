/* What the browser does alone: colour scheme, heartbeat, drawing again only what changed, keyboard, cluster map. What stands in the
   address: address.js. It fetches only /api/v1/health. */
(function () {
    'use strict';

    var STALE_SECONDS = 15;
    var NARROW_PIXELS = 900;
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

    /* Pages whose figures follow the rounds. What a simulation found is as true as ever. */
    var OF_ROUNDS = /^\/(cluster|jobs(\/.+)?|rounds(\/[^/]+)?)?$/;

    /* Dims figures that are not of now (`since`: of when they are, null while they are), and gives the words for it. */
    function aged(since) {
        var old = since !== null;
        if (old) { document.documentElement.dataset.maatStale = ''; } else { delete document.documentElement.dataset.maatStale; }
        if (!old) { return ''; }
        var at = new Date(since).toISOString();
        return 'Not of now: this page shows how it stood ' + span((Date.now() - since) / 1000) + ' ago, at ' + at.slice(11, 19) + ' UTC on ' + at.slice(0, 10) + '.';
    }

    function withoutRounds(health) {
        var worker = health.worker || {};
        var stale = worker.state === 'stale' && typeof worker.last_round_age_seconds === 'number' && OF_ROUNDS.test(window.location.pathname);
        return stale ? Date.now() - 1000 * worker.last_round_age_seconds : null;
    }

    function freshness(health) {
        var worker = health.worker || {};
        var age = worker.last_round_age_seconds;
        if (worker.state === 'none' || age === null || age === undefined) { return ['no round yet', 'freshness waiting']; }
        if (worker.state === 'stale') { return ['stale · last round ' + span(age) + ' ago', 'freshness stale']; }
        return ['live · round ' + span(age) + ' ago', 'freshness live'];
    }

    /* Whether what is shown is not what the address names: that page was asked for and did not come, and nothing else would ask for it again. */
    function astray() {
        beatsAstray = shownPath !== null && shownPath !== window.location.pathname && !window.maatBusy() ? beatsAstray + 1 : 0;
        return beatsAstray > 1;
    }

    function narrow() { return window.innerWidth < NARROW_PIXELS; }

    /* A request in flight when the filters change would be taken for the answer to the new ones: ask again after it. */
    function whenIdle(act) { setTimeout(function () { if (window.maatBusy()) { whenIdle(act); } else { act(); } }, 100); }

    /* A list without rows has no block that could be refreshed. */
    function askAgain(api) { if (api.getDisplayedRowCount()) { api.refreshInfiniteCache(); } else { api.purgeInfiniteCache(); } }

    function gridApi(id) {
        try { return window.dash_ag_grid.getApi(id); } catch (absent) { return null; }
    }

    var LEAST_SAYING = ['remaining', 'restarts'], ROOM_FOR_ALL = 1180;

    function fitColumns(id) {
        var api = gridApi(id), box = document.getElementById(id);
        if (api && box) { api.setColumnsVisible(LEAST_SAYING, box.clientWidth >= ROOM_FOR_ALL); }
    }
    window.addEventListener('resize', function () { fitColumns('jobs-grid'); });

    window.dash_clientside = window.dash_clientside || {};
    window.dash_clientside.maat = Object.assign(window.dash_clientside.maat || {}, {
        scheme: function (choice) {
            var scheme = effective(choice);
            paint(scheme);
            return [scheme, scheme];
        },

        heartbeat: async function (_beats, live) {
            var skip = noUpdate();
            try {
                var answer = await fetch('/api/v1/health', {headers: {Accept: 'application/json'}});
                if (!answer.ok && answer.status !== 503) { return [skip, 'no access (' + answer.status + ')', 'freshness stale', aged(lastAnswer)]; }
                var health = await answer.json();
                lastAnswer = Date.now();
                if (astray()) { window.location.reload(); }
                var shown = freshness(health);
                var idle = !document.hidden && window.maatAtRest();
                return [live && !idle ? skip : {at: Date.now()}, shown[0], shown[1], aged(withoutRounds(health))];
            } catch (unreachable) {
                var silent = (Date.now() - lastAnswer) / 1000;
                return [skip, silent < STALE_SECONDS ? 'retrying' : 'no answer for ' + span(silent) + ', retrying', 'freshness stale', aged(silent < STALE_SECONDS ? null : lastAnswer)];
            }
        },

        /* On a narrow screen the navigation lies over the page, and goes with the page that it was opened on. */
        toggleNavigation: function (_clicks, _path, open, over) {
            var asked = window.dash_clientside.callback_context.triggered_id === 'nav-toggle';
            if (narrow()) { return [noUpdate(), asked ? !over : false]; }
            return [asked ? !open : noUpdate(), noUpdate()];
        },

        navigation: function (open, over) {
            var classes = (open === false ? 'navbar-closed' : '') + (over ? '' : ' navbar-away');
            return [{width: open === false && !narrow() ? 56 : 200, breakpoint: NARROW_PIXELS, collapsed: {mobile: !over}}, classes];
        },

        markHere: function (path) {
            return window.dash_clientside.callback_context.outputs_list.map(function (output) {
                var icon = output.id.nav;
                var root = icon === 'overview' ? '/' : '/' + icon;
                var here = root === '/' ? path === '/' : path === root || (path || '').indexOf(root + '/') === 0;
                return 'nav-link' + (here || (icon === 'simulate' && (path || '').indexOf('/simulations') === 0) ? ' here' : '');
            });
        },

        /* What to try of a setting; nothing can be tried of no setting. */
        exampleValues: function (name, examples) { return [examples[name] || '', !(name in examples)]; },

        openHelp: function () { return true; },

        /* After the filters are stored: the rows are asked for with what is stored. */
        restartGrid: function (_filters, _cluster, id) {
            var api = gridApi(id);
            if (!api) { return noUpdate(); }
            var late = window.maatBusy();
            api.purgeInfiniteCache();
            if (late) { whenIdle(function () { askAgain(api); }); }
            return noUpdate();
        },

        clearFilters: function () { return ['', [], [], []]; },

        /* What says least gives way where the columns have no room beside one another. */
        fitColumns: function (_request, id) {
            fitColumns(id);
            return noUpdate();
        },

        refreshGrid: function (_live, id) {
            var api = gridApi(id);
            if (api && api.getGridOption('rowModelType') === 'infinite') { askAgain(api); }
            return noUpdate();
        },

        /* The first field of a form is ready to be typed into. */
        focusOn: function (id) {
            setTimeout(function () { var field = document.getElementById(id); if (field) { field.focus({preventScroll: true}); } }, 0);
            return noUpdate();
        },

        openOn: function (pressed) { return pressed ? true : noUpdate(); }
    });

    /* ---- drawing again ---- */

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

    /* The field gets the focus: now, or as soon as the page that has it is there. */
    var awaited = null;
    function focusField(id, path) {
        var field = document.getElementById(id);
        if (!field) { awaited = id; window.maatGo(path); return; }
        awaited = null;
        field.focus();
        if (field.select) { field.select(); }
    }
    new MutationObserver(function () {
        if (awaited && document.getElementById(awaited)) { focusField(awaited); }
        // dcc.Upload gives its field no name.
        document.querySelectorAll('[id$="-upload"] input[type="file"]:not([aria-label])').forEach(function (field) {
            field.setAttribute('aria-label', field.closest('[id$="-upload"]').querySelector('[data-most-bytes] [aria-label]').getAttribute('aria-label'));
        });
    }).observe(document.documentElement, {childList: true, subtree: true});
    document.addEventListener('pointerdown', function () { awaited = null; });

    /* A name that is cut stands whole beside the cell that has the focus, as the pointer shows it. */
    function nameTip(cell) {
        var link = cell && cell.querySelector('.cut-in-middle'), box = document.getElementById('name-tip');
        var cut = link && Array.from(link.children).some(function (part) { return part.scrollWidth > part.clientWidth + 1; });
        if (!box && cut) { box = document.body.appendChild(document.createElement('div')); box.id = 'name-tip'; box.setAttribute('aria-hidden', 'true'); }
        if (box) { box.style.display = cut ? 'block' : 'none'; }
        if (!cut) { return; }
        var at = cell.getBoundingClientRect();
        box.textContent = link.textContent;
        box.style.left = Math.max(8, Math.min(at.left, window.innerWidth - box.offsetWidth - 8)) + 'px';
        box.style.top = at.bottom + 2 + 'px';
    }
    document.addEventListener('focusin', function (event) { nameTip(event.target.closest && event.target.closest('.ag-cell')); });
    document.addEventListener('focusout', function () { nameTip(null); });
    document.addEventListener('scroll', function () { nameTip(null); }, {capture: true, passive: true});

    /* Enter on a cell does what its row is there for: it presses the cell's own button or link, or else opens the row's first link. */
    function openRow(cell) {
        var target = cell.querySelector('a[href], button') || cell.closest('.ag-row').querySelector('a[href]');
        if (!target) {
            var grid = cell.closest('.ag-root'), row = cell.closest('.ag-row').getAttribute('row-index');
            target = grid.querySelector('.ag-row[row-index="' + row + '"] a[href]');
        }
        if (target) { target.click(); }
        return Boolean(target);
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
        var total = files.reduce(function (sum, file) { return sum + file.size; }, 0);
        if (!words && total > most) {
            words = 'The files have ' + (total / 1e6).toFixed(1) + ' MB together, more than the ' + most / 1e6 + ' MB that may come at once. Choose fewer or smaller ones.';
        }
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

    /* A field tells its form what was typed a moment later (its debounce): a press that comes sooner waits until it has. */
    var TOLD_AFTER = 350, typedAt = 0;  // milliseconds
    document.addEventListener('input', function (event) {
        if (event.target.closest && event.target.closest('[data-submit]')) { typedAt = Date.now(); }
    }, true);
    document.addEventListener('click', function (event) {
        var form = event.target.closest && event.target.closest('[data-submit]');
        var left = typedAt + TOLD_AFTER - Date.now();
        if (left <= 0 || !form || !event.target.closest('#' + form.dataset.submit)) { return; }
        event.stopImmediatePropagation();
        event.preventDefault();
        if (form.maatPressed) { return; }
        form.maatPressed = true;
        setTimeout(function () { form.maatPressed = false; document.getElementById(form.dataset.submit).click(); }, left);
    }, true);

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
        if (event.key === 'Enter' && event.target.classList.contains('ag-cell') && openRow(event.target)) { event.preventDefault(); return; }
        if (event.target.closest('[role="dialog"]')) { return; }
        if (pending === 'g' && PLACES[event.key]) { pending = null; event.preventDefault(); window.maatGo(PLACES[event.key]); return; }
        pending = event.key === 'g' ? 'g' : null;
        if (event.key === '/') { event.preventDefault(); focusField('jobs-search', '/jobs'); }
        if (event.key === 'n') { event.preventDefault(); focusField('submit-name', '/submit'); }
        if (event.key === '?') { event.preventDefault(); window.dash_clientside.set_props('help', {opened: true}); }
    });
})();
