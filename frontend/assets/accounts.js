/* Signing in and out: what sets a browser's cookies runs in the browser. */
(() => {
    'use strict';

    const { maat } = window;
    const HERE = '/sign-in';

    /* The page to come back to: one of this site, whatever the address says. */
    function nextPage() {
        const wanted = new URLSearchParams(window.location.search).get('next') || '/';
        try {
            const there = new URL(wanted, window.location.origin);
            const own = there.origin === window.location.origin && wanted.startsWith('/');
            // A path such as /x/..//host becomes //host, which alone is another site.
            const leads = own && !there.pathname.startsWith('//') && there.pathname !== HERE;
            return leads ? there.href : '/';
        } catch (unreadable) { return '/'; }
    }

    async function send(method, path, body) {
        const headers = { Accept: 'application/json', ...maat.csrfHeader() };
        if (body) { headers['Content-Type'] = 'application/json'; }
        const answer = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
        if (answer.ok) { return null; }
        const problem = await answer.json().catch(() => ({}));
        const told = (problem.errors || []).map((error) => `${error.message} ${error.remedy}`);
        return told.join(' ') || problem.detail || `The service answers ${answer.status}.`;
    }

    async function tried(method, path, body) {
        try { return await send(method, path, body); } catch (unreachable) {
            return 'The service gives no answer. Try again in a moment.';
        }
    }

    maat.callbacks({
        /* Buttons whose press the service would refuse are off, as the note on rights says. */
        holdBack(words) {
            const held = window.dash_clientside.callback_context.outputs_list[0];
            return [held.map(() => Boolean(words)), held.map(() => words || '')];
        },

        async signIn(clicks, name, password) {
            if (!clicks) { return maat.noUpdate(); }
            const missing = name ? 'sign-in-password' : 'sign-in-name';
            const refused = (words, field) => {
                maat.focusField(field, HERE);
                return words;
            };
            if (!name || !password) {
                return refused('Give your name and your password.', missing);
            }
            const problem = await tried('POST', '/api/v1/sessions', { name, password });
            if (problem !== null) { return refused(problem, 'sign-in-password'); }
            window.location.replace(nextPage());
            return '';
        },

        /* Who runs Maat on this machine needs no session: without its cookie, they are `local`. */
        async goOnLocally(clicks) {
            if (!clicks) { return maat.noUpdate(); }
            const problem = await tried('DELETE', '/api/v1/sessions/current');
            if (problem !== null) { return problem; }
            window.location.replace(nextPage());
            return '';
        },

        async signOut(clicks) {
            if (!clicks) { return maat.noUpdate(); }
            await tried('DELETE', '/api/v1/sessions/current');
            window.location.assign(HERE);
            return maat.noUpdate();
        },

        async changePassword(clicks, old, fresh, again) {
            if (!clicks) { return maat.noUpdate(); }
            if (fresh !== again) { return 'The new password is not the same twice.'; }
            const body = { old_password: old || '', new_password: fresh || '' };
            const problem = await tried('POST', '/api/v1/me/password', body);
            if (problem !== null) { return problem; }
            ['old', 'new', 'again'].forEach((field) => {
                maat.setProps(`account-${field}`, { value: '' });
            });
            return 'The password is changed. You are signed out in all other browsers.';
        },

        /* Whose session is over signs in again, and comes back here. */
        signedOut(atFirst, since) {
            const over = atFirst || since;
            const { pathname, search } = window.location;
            if (over && pathname !== HERE) {
                const next = encodeURIComponent(pathname + search);
                window.location.replace(`${HERE}?next=${next}`);
            }
            return maat.noUpdate();
        },
    });
})();
