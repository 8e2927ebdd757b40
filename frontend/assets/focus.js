/* Keeps the focus. A control loses it when it is drawn again: the new control that does the same
   gets it. One that is switched off while its press is answered gets it back. When a dialog
   closes, its opener gets it; where nothing is left, or on another page, the page's content, as
   after a link of the navigation. A focus that the reader moved stays moved. */
(() => {
    'use strict';

    const { maat } = window;
    const GONE_AFTER = 300; // milliseconds: what is drawn again is there by then
    const OFF = ['disabled', 'data-disabled', 'data-loading'];
    let focused = null, opener = null;
    let page = null; // on which the focus came to where it is
    let isOff = false, gone = null; // the focused control is switched off, or no longer there
    let awaited = null; // id of the field that gets the focus as soon as its page is there

    const pageNow = () => window.location.pathname.split('/')[1]; // all jobs have one
    const inDialog = (element) => Boolean(element.closest('[role="dialog"]'));

    /* The control of the page that does the same as one that is gone. */
    function alike(element) {
        const name = ['id', 'href', 'aria-label'].find((each) => element.getAttribute(each));
        const value = name && JSON.stringify(element.getAttribute(name));
        return name && document.querySelector(`${element.tagName}[${name}=${value}]`);
    }

    document.addEventListener('focusin', (event) => {
        if (inDialog(event.target) && focused && !inDialog(focused)) { opener = focused; }
        focused = event.target;
        page = pageNow();
        isOff = false;
    });
    document.addEventListener('focusout', (event) => {
        setTimeout(() => {
            const left = focused === event.target && focused.isConnected && isNowhere();
            if (left && !switchedOff(focused)) { focused = null; }
        }, 0);
    });
    document.addEventListener('pointerdown', (event) => {
        isOff = false;
        // The reader let go of a control that is switched off.
        if (focused && switchedOff(focused) && !focused.contains(event.target)) { focused = null; }
    }, true);

    const isNowhere = () => document.activeElement === document.body;
    const switchedOff = (element) => OFF.some((name) => element.hasAttribute(name));

    /* The control that gets the focus back once it is on again; null if there is none. */
    maat.awaitsFocus = () => {
        const awaits = focused && focused.isConnected && switchedOff(focused);
        return awaits && [document.body, focused].includes(document.activeElement) ? focused : null;
    };

    function restore() {
        if (!focused) { return; }
        if (switchedOff(focused)) { isOff = true; }
        if (focused.isConnected) {
            if (isOff && !switchedOff(focused) && isNowhere()) { focused.focus(); }
            return;
        }
        if (isNowhere() && !toAlike()) { gone = gone || setTimeout(toContent, GONE_AFTER); }
    }

    /* Returns whether there is a control for the focus. */
    function toAlike() {
        if (page !== pageNow()) { return null; }
        const again = alike(focused) || (inDialog(focused) && opener && alike(opener));
        if (again) { again.focus({ preventScroll: true }); }
        return again;
    }

    function toContent() {
        gone = null;
        if (!focused || focused.isConnected || !isNowhere() || toAlike()) { return; }
        focused = null;
        document.getElementById('content').focus({ preventScroll: true });
    }

    /* Gives a field the focus: now, or as soon as its page at `path` is there. */
    maat.focusField = (id, path) => {
        const field = document.getElementById(id);
        if (!field) {
            awaited = id;
            maat.go(path);
            return;
        }
        awaited = null;
        field.focus();
        if (field.select) { field.select(); }
    };
    /* Buttons that lead to a field of their page. */
    document.addEventListener('click', (event) => {
        const button = maat.around(event.target, '[data-focus]');
        if (!button) { return; }
        const field = document.getElementById(button.dataset.focus);
        if (field?.offsetHeight) { field.scrollIntoView({ block: 'center' }); }
        maat.focusField(button.dataset.focus, window.location.pathname);
    });
    document.addEventListener('pointerdown', () => { awaited = null; });

    /* A link of the navigation that is pressed by a key leads into its page. */
    document.addEventListener('click', (event) => {
        const isByKey = event.detail === 0 && maat.around(event.target, '.nav-link');
        if (isByKey) { setTimeout(() => document.getElementById('content').focus(), 0); }
    });

    new MutationObserver(() => {
        restore();
        if (awaited && document.getElementById(awaited)) { maat.focusField(awaited); }
    }).observe(document.documentElement, {
        childList: true, subtree: true, attributes: true, attributeFilter: OFF,
    });

    maat.callbacks({
        /* The first field of a form can be typed into at once; not while the tour leads here. */
        focusOn(id) {
            setTimeout(() => {
                if (document.activeElement.closest('.tour')) { return; }
                document.getElementById(id)?.focus({ preventScroll: true });
            }, 0);
            return maat.noUpdate();
        },
    });
})();
