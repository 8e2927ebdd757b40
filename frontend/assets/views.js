/* Views of the job list, kept in this browser by name. A view is the query of its address. */
(() => {
    'use strict';

    const { maat } = window;
    const KEY = 'maat-job-views';
    const PATH = '/jobs';
    let changes = 0;
    let settled = null; // the view that is open, or being opened

    function kept() {
        try {
            const found = JSON.parse(localStorage.getItem(KEY));
            return found && typeof found === 'object' ? found : {};
        } catch (unreadable) { return {}; }
    }

    function keep(views) {
        try {
            localStorage.setItem(KEY, JSON.stringify(views));
        } catch (forbidden) { /* then there are none */ }
        changes += 1;
        return [changes, false];
    }

    /* The same for parameters in another order. */
    function ordered(query) {
        const parameters = new URLSearchParams(query);
        parameters.sort();
        return parameters.toString();
    }

    const here = () => ordered(window.location.search);

    /* The name of the view that the address is, if it is one. */
    function opened(views) {
        return Object.keys(views).sort().filter((name) => views[name] === here())[0] || null;
    }

    function named(text) { return String(text || '').trim(); }

    maat.callbacks({
        /* A view that was chosen just now stays chosen until it is opened. */
        offerViews(...inputs) {
            const views = kept(), names = Object.keys(views).sort();
            const chosen = inputs[inputs.length - 1] || null;
            const style = names.length ? {} : { display: 'none' };
            if (chosen !== null && chosen !== settled) {
                return [names, maat.noUpdate(), style, names];
            }
            settled = opened(views);
            return [names, settled, style, names];
        },

        openView(name) {
            settled = name;
            const query = kept()[name];
            if (query !== undefined && query !== here()) { maat.go(`${PATH}?${query}`); }
            return maat.noUpdate();
        },

        /* The address tells: a view that opens is named by the chooser only once it is drawn. */
        askView(clicks) {
            const asked = [true, opened(kept()) || ''];
            return clicks ? asked : [maat.noUpdate(), maat.noUpdate()];
        },

        knownView: (name) => [!(named(name) in kept()), !named(name)],

        keepView(clicks, name) {
            if (!clicks || !named(name)) { return [maat.noUpdate(), maat.noUpdate()]; }
            return keep({ ...kept(), [named(name)]: here() });
        },

        deleteView(clicks, name) {
            const { [named(name)]: gone, ...others } = kept();
            if (!clicks || gone === undefined) { return [maat.noUpdate(), maat.noUpdate()]; }
            return keep(others);
        },
    });
})();
