/* The colour scheme: light, dark, or the one of the system. */
(() => {
    'use strict';

    const { maat } = window;
    const systemIsDark = matchMedia('(prefers-color-scheme: dark)');

    function effective(choice) {
        if (choice === 'light' || choice === 'dark') { return choice; }
        return systemIsDark.matches ? 'dark' : 'light';
    }

    function paint(scheme) {
        document.documentElement.dataset.maatScheme = scheme;
        document.body.dataset.agThemeMode = scheme;
    }

    systemIsDark.addEventListener('change', () => {
        const chosen = document.querySelector('#scheme-choice input:checked');
        if (chosen?.value !== 'system') { return; }
        const scheme = effective('system');
        paint(scheme);
        maat.setProps('mantine', { forceColorScheme: scheme });
        maat.setProps('scheme', { data: scheme });
    });

    maat.callbacks({
        scheme(choice, shown) {
            const scheme = effective(choice);
            paint(scheme);
            return scheme === shown ? [maat.noUpdate(), maat.noUpdate()] : [scheme, scheme];
        },
    });
})();
