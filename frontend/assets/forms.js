/* Forms and buttons: Enter submits, a press waits for what was typed, and a button that is drawn
   again loses no press. */
(() => {
    'use strict';

    const { maat } = window;
    const TOLD_AFTER = 350; // milliseconds: the debounce after which a field informs its form
    const DRAWN_AWAY = 5; // pixels
    const AGAIN_AFTER = 50, MOST_LOOKS = 20; // milliseconds; a field may show its value otherwise
    const pressed = new WeakSet(); // buttons whose press waits
    const wasPressed = new WeakSet(); // buttons
    const waiting = new Set(); // ids of buttons that a key pressed while they were off
    let typedAt = 0, typed = null;

    document.addEventListener('input', (event) => {
        if (!maat.around(event.target, '[data-submit]')) { return; }
        typedAt = Date.now();
        typed = event.target;
    }, true);

    const chooses = (element) => element.getAttribute('aria-expanded') === 'true'
        || Boolean(element.getAttribute('aria-haspopup'));

    /* Whether the form holds what was typed: a busy browser tells it late. */
    function isKnown() {
        if (!typed?.id || chooses(typed)) { return true; }
        const field = maat.layoutOf(typed.id);
        const plain = (value) => String(value ?? '').replace(/\s/g, '');
        return !field || Array.isArray(field.props.value) // tags
            || plain(field.props.value) === plain(typed.value);
    }

    function onceKnown(act, looks = MOST_LOOKS) {
        if (isKnown() || !looks) { act(); } else {
            setTimeout(() => onceKnown(act, looks - 1), AGAIN_AFTER);
        }
    }

    /* A press that comes before the form knows what was typed waits until it does: of the button
       that submits it, and of others that read it. */
    document.addEventListener('click', (event) => {
        const form = maat.around(event.target, '[data-submit]');
        const button = form && event.target.closest(`#${form.dataset.submit}, [data-reads]`);
        const left = typedAt + TOLD_AFTER - Date.now();
        if (!button || (left <= 0 && isKnown())) { return; }
        event.stopImmediatePropagation();
        event.preventDefault();
        if (pressed.has(button)) { return; }
        pressed.add(button);
        const press = () => {
            pressed.delete(button);
            typedAt = 0;
            typed = null;
            pressOnceReady(button.id);
        };
        setTimeout(() => onceKnown(press), left);
    }, true);

    /* Presses a button. One that is off though nobody has pressed it is not ready yet, as when Dash
       makes its first call for it: the press waits. One that is off since a press is answered
       takes no second one. */
    function pressOnceReady(id, looks = MOST_LOOKS) {
        const button = document.getElementById(id);
        if (button?.disabled && !wasPressed.has(button) && looks) {
            const left = maat.busy() ? looks : looks - 1;
            setTimeout(() => pressOnceReady(id, left), AGAIN_AFTER);
            return;
        }
        waiting.delete(id);
        button?.click();
    }
    document.addEventListener('click', (event) => {
        const button = maat.around(event.target, 'button');
        if (button) { wasPressed.add(button); }
    });
    /* A form that was changed since its button was pressed takes a new press. */
    document.addEventListener('input', (event) => {
        const form = maat.around(event.target, '[data-submit]');
        const button = form && document.getElementById(form.dataset.submit);
        if (button && !button.disabled) { wasPressed.delete(button); }
    });

    /* Enter and the space bar also press a button that was switched off under the focus. */
    document.addEventListener('keydown', (event) => {
        const button = ['Enter', ' '].includes(event.key) && maat.awaitsFocus();
        if (!button || button.tagName !== 'BUTTON' || waiting.has(button.id)) { return; }
        waiting.add(button.id);
        pressOnceReady(button.id);
    }, true);

    /* What can have the focus of a refused field, or of a file that an error is told of. */
    function firstRefused(form) {
        const told = [...form.querySelectorAll('[aria-invalid="true"], .form-error:not(:empty)')];
        return told.filter((each) => each.offsetHeight).map((each) => (
            each.matches('.form-error') ? each.parentElement.querySelector('.choose') : each
        )).find(Boolean);
    }

    /* Once a press is answered, the first field that was refused gets the focus, and is in sight;
       if none was, the button has it. A focus that the reader moved meanwhile stays moved. */
    function leadToRefused(form, button, looks = MOST_LOOKS) {
        const again = (left) => setTimeout(() => leadToRefused(form, button, left), AGAIN_AFTER);
        if (!form.isConnected) { return; }
        if (maat.busy()) { again(looks); return; }
        const refused = firstRefused(form);
        if (!refused && looks) { again(looks - 1); return; } // one answer leads to the next call
        if (![document.body, button].includes(document.activeElement)) { return; }
        if (!refused) { button.focus({ preventScroll: true }); return; }
        refused.focus({ preventScroll: true });
        refused.scrollIntoView({ block: 'center' });
    }
    document.addEventListener('click', (event) => {
        const form = maat.around(event.target, '[data-submit]');
        const button = form && event.target.closest(`#${form.dataset.submit}`);
        if (button) { setTimeout(() => leadToRefused(form, button), TOLD_AFTER); }
    });

    /* A press whose button moves away under the pointer still counts: an error above it that goes
       when its field is left moves the whole form. Drawing the pointer away presses nothing. */
    let down = null;
    document.addEventListener('pointerdown', (event) => {
        const button = maat.around(event.target, 'button');
        down = button && { button, x: event.clientX, y: event.clientY };
    }, true);
    document.addEventListener('click', (event) => {
        const begun = down;
        down = null;
        if (!begun || !event.isTrusted || !begun.button.isConnected) { return; }
        const moved = Math.hypot(event.clientX - begun.x, event.clientY - begun.y);
        const missed = event.target.contains(begun.button) && event.target !== begun.button;
        if (missed && moved < DRAWN_AWAY) { begun.button.click(); }
    }, true);

    /* Puts a press into the store of its page. See click_target() in routing.py for why not by the
       button's own n_clicks. */
    document.addEventListener('click', (event) => {
        const button = maat.around(event.target, '[data-press]');
        if (!button || button.disabled) { return; }
        const press = { at: Date.now(), ...JSON.parse(button.dataset.what) };
        maat.setProps(button.dataset.press, { data: press });
    });

    /* Presses the button of the form in which Enter was pressed. Returns whether it did. */
    maat.submitByKey = (event) => {
        const form = maat.around(event.target, '[data-submit]');
        if (event.key !== 'Enter' || !form || event.defaultPrevented) { return false; }
        const withKey = event.ctrlKey || event.metaKey;
        const isPlain = event.target.tagName === 'INPUT' && !chooses(event.target);
        if (!isPlain && !withKey) { return false; }
        event.target.blur();
        setTimeout(() => pressOnceReady(form.dataset.submit), 0);
        return true;
    };

    maat.callbacks({
        openOn: (press) => (press ? true : maat.noUpdate()),

        /* Values to try of a setting; none, and a disabled field, if no setting is chosen. */
        exampleValues: (name, examples) => [examples[name] || '', !(name in examples)],
    });
})();
