/* The first minute: what one is looking at, in five steps, each beside what it speaks of. It opens
   once by itself, on the overview of a cluster with GPUs, without taking the focus; the help opens
   it again. Esc closes it. */
(() => {
    'use strict';

    const { maat } = window;
    const KEPT = 'maat-tour', SEEN = 'seen';
    const LOOK_MILLISECONDS = 300, ROOM = 4;
    const STEPS = [
        {
            path: '/', at: '#overview-verdict', title: 'The cluster in one sentence',
            text: 'How many jobs run, on how many GPUs, and who waits. If something is wrong, '
                + 'it stands above this line, in red.',
        },
        {
            path: '/', at: '#overview-map', title: 'One square is one GPU',
            text: 'Its colour is its type, joined squares are one job. Point at a job: it is lit '
                + 'wherever the page shows it. A click opens it.',
        },
        {
            path: '/', at: '#overview-changes', title: 'Each round chooses again',
            text: 'Maat gives each job GPU type, GPU count and batch size so that all together get '
                + 'the most useful work done. Here is what the last round changed.',
        },
        {
            path: '/rounds', at: '#round-matrix-box', title: 'Why it decided so',
            text: 'Each row is a job, each column a choice: the brighter, the faster. The frame is '
                + 'what it got. Point at a row: it says what was next best, and why.',
        },
        {
            path: '/submit', at: '#submit-name', title: 'Your turn',
            text: 'Describe a job here: before you send it, the page says what it would get and '
                + 'when it would start. The keys: ? shows them, and this tour again.',
        },
    ];
    let step = null, box = null, ring = null, looking = null, before = null, arrived = false;

    function seen() {
        try { return localStorage.getItem(KEPT) === SEEN; } catch (forbidden) { return true; }
    }

    function remember() {
        try { localStorage.setItem(KEPT, SEEN); } catch (forbidden) { /* it opens again */ }
    }

    function make(tag, className, text) {
        const element = document.createElement(tag);
        element.className = className;
        if (text !== undefined) { element.textContent = text; }
        return element;
    }

    function button(text, act) {
        const made = make('button', 'chart-tool', text);
        made.type = 'button';
        made.addEventListener('click', act);
        return made;
    }

    function build() {
        box = make('section', 'tour');
        box.setAttribute('aria-label', 'What am I looking at?');
        box.tabIndex = -1;
        ring = make('div', 'tour-ring');
        ring.setAttribute('aria-hidden', 'true');
        document.body.append(ring, box);
    }

    function say() {
        const { title, text } = STEPS[step], told = make('div', '');
        told.setAttribute('role', 'status');
        told.append(make('h2', 'card-title', title), make('p', 'tour-text', text));
        const last = step === STEPS.length - 1, buttons = make('div', 'tour-buttons');
        buttons.append(make('span', 'caption', `${step + 1} of ${STEPS.length}`));
        if (step) { buttons.append(button('Back', () => show(step - 1, true))); }
        if (!last) { buttons.append(button('Close', close)); }
        const next = button(last ? 'Done' : 'Next', () => (last ? close() : show(step + 1, true)));
        next.classList.add('tour-next');
        buttons.append(next);
        box.replaceChildren(told, buttons);
        return next;
    }

    function target() {
        const found = document.querySelector(STEPS[step].at);
        return found && found.offsetHeight ? found.closest('.card') || found : null;
    }

    /* A visitor who leaves the page of a step has seen enough: the card does not follow. */
    function look() {
        const there = window.location.pathname === STEPS[step].path;
        if (arrived && !there) { close(); return; }
        arrived = there;
        const found = target();
        ring.style.display = found ? 'block' : 'none';
        if (!found) { return; }
        const at = found.getBoundingClientRect();
        ring.style.left = `${at.left - ROOM}px`;
        ring.style.top = `${at.top - ROOM}px`;
        ring.style.width = `${at.width + 2 * ROOM}px`;
        ring.style.height = `${at.height + 2 * ROOM}px`;
    }

    function show(number, focus) {
        step = number;
        arrived = false;
        const { path, at } = STEPS[step];
        if (window.location.pathname !== path) { maat.go(path); }
        const next = say();
        if (focus) { next.focus({ preventScroll: true }); }
        if (focus) { maat.showPart(at.slice(1)); }
        look();
    }

    function open(focus) {
        if (step !== null) { return; }
        before = document.activeElement;
        build();
        show(0, focus);
        looking = setInterval(look, LOOK_MILLISECONDS);
    }

    function close() {
        clearInterval(looking);
        remember();
        const held = box.contains(document.activeElement);
        box.remove();
        ring.remove();
        step = null;
        if (!held) { return; }
        const again = before.isConnected ? before : document.getElementById(before.id);
        const back = again && again !== document.body ? again : document.getElementById('content');
        if (back) { back.focus({ preventScroll: true }); }
    }

    document.addEventListener('keydown', event => {
        const dialog = document.querySelector('[role="dialog"]');
        if (event.key === 'Escape' && step !== null && !dialog) { close(); }
    });

    document.addEventListener('click', event => {
        if (!maat.around(event.target, '#tour-open')) { return; }
        maat.setProps('help', { opened: false });
        openAfterHelp();
    });

    /* The help gives the focus back as it goes; a tour opened before would lose it. */
    function openAfterHelp() {
        if (document.querySelector('[role="dialog"]')) {
            setTimeout(openAfterHelp, 50);
            return;
        }
        document.getElementById('help-open')?.focus({ preventScroll: true });
        open(true);
    }

    /* By itself: once the overview has drawn a cluster. */
    function wait(tries) {
        if (step !== null || seen()) { return; }
        if (window.location.pathname === '/' && document.querySelector('#overview-map .gpu-node')) {
            open(false);
        } else if (tries) { setTimeout(() => wait(tries - 1), 1000); }
    }
    if (!seen()) { setTimeout(() => wait(60), 1000); }
})();
