/* Keeps the focus. A control loses it when it is drawn again: the new control that does the same
   gets it. When a dialog closes, its opener gets it. A focus that the reader moved stays moved. */
(() => {
    'use strict';

    const { maat } = window;
    let focused = null, opener = null;
    let awaited = null; // id of the field that gets the focus as soon as its page is there

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
    });
    document.addEventListener('focusout', (event) => {
        setTimeout(() => {
            const nowhere = document.activeElement === document.body;
            if (focused === event.target && focused.isConnected && nowhere) { focused = null; }
        }, 0);
    });

    function restore() {
        if (!focused || focused.isConnected || document.activeElement !== document.body) { return; }
        const again = alike(focused) || (inDialog(focused) && opener && alike(opener));
        if (again) { again.focus({ preventScroll: true }); } else { focused = null; }
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

    new MutationObserver(() => {
        restore();
        if (awaited && document.getElementById(awaited)) { maat.focusField(awaited); }
    }).observe(document.documentElement, { childList: true, subtree: true });

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
