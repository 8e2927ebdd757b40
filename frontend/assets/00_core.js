/* What the scripts share. Dash loads this script first, by its name. The one global is
   `window.maat`, begun by the script in index.py. */
(() => {
    'use strict';

    const maat = window.maat;
    const AGAIN_MILLISECONDS = 3000;

    /* Adds callbacks that Python registers with `in_browser(app, "name", ...)`. */
    maat.callbacks = (functions) => {
        window.dash_clientside = window.dash_clientside || {};
        window.dash_clientside.maat = Object.assign(window.dash_clientside.maat || {}, functions);
    };

    /* `18 034`: thousands apart, as everywhere. */
    maat.count = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, ' ');

    maat.noUpdate = () => window.dash_clientside.no_update;

    maat.setProps = (id, props) => window.dash_clientside.set_props(id, props);

    /* The component with this id, or null if the page has none: getLayout throws for an id that
       was left with its page. */
    maat.layoutOf = (id) => {
        const api = window.dash_component_api;
        try { return api.getLayout(id) || null; } catch (left) { return null; }
    };

    /* Runs a script that comes later, and asks for it again until it has come. */
    maat.runScript = (address) => new Promise((done) => {
        const script = document.createElement('script');
        script.src = address;
        script.onload = done;
        script.onerror = () => setTimeout(() => done(maat.runScript(address)), AGAIN_MILLISECONDS);
        document.head.append(script);
    });

    /* The element at or around the target of an event that matches, else null. */
    maat.around = (target, selector) => (target.closest ? target.closest(selector) : null);
})();
