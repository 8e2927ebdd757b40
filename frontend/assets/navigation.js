/* The navigation at the side, the title of the page, and the help. */
(() => {
    'use strict';

    const { maat } = window;
    const NARROW_PIXELS = 900; // as in maat.css and shell.py: navigation lies over narrower pages
    const WIDE = 200, ICONS = 56; // pixels of the navigation, open and closed

    const narrow = () => window.innerWidth < NARROW_PIXELS;

    function look(icon, path) {
        const root = icon === 'overview' ? '/' : `/${icon}`;
        const here = path === root || (root !== '/' && path.startsWith(`${root}/`))
            || (icon === 'simulate' && path.startsWith('/simulations'));
        return here ? 'nav-link here' : 'nav-link';
    }

    maat.navigationLook = look;

    maat.callbacks({
        /* On a narrow screen the navigation lies over the page; another page closes it. */
        toggleNavigation(_clicks, _path, open, over) {
            const asked = window.dash_clientside.callback_context.triggered_id === 'nav-toggle';
            if (narrow()) { return [maat.noUpdate(), asked ? !over : false]; }
            return [asked ? !open : maat.noUpdate(), maat.noUpdate()];
        },

        navigation(open, over) {
            const closed = open === false;
            const classes = (closed ? 'navbar-closed' : '') + (over ? '' : ' navbar-away');
            const width = closed && !narrow() ? ICONS : WIDE;
            return [{ width, breakpoint: NARROW_PIXELS, collapsed: { mobile: !over } }, classes];
        },

        markHere(path) {
            const links = window.dash_clientside.callback_context.outputs_list;
            return links.map((output) => look(output.id.nav, path || ''));
        },

        titleOfPage(title) {
            if (title) { document.title = `${title} · Maat`; }
            return maat.noUpdate();
        },

        openHelp: () => true,
    });
})();
