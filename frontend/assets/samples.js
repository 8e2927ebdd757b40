/* Draws one of each kind of what pages are made of (components/samples.py), in idle time and out of
   sight. Each is gone once it is drawn. */
(() => {
    'use strict';

    const { maat } = window;
    const PLACE = 'sample';
    const LOOK_MILLISECONDS = 100, LOOKS = 20;
    const pause = () => new Promise((next) => { setTimeout(next, LOOK_MILLISECONDS); });

    async function draw({ part, drawn }) {
        if (drawn && document.querySelector(drawn)) { return; }
        maat.setProps(PLACE, { children: part });
        for (let looks = drawn ? LOOKS : 1; looks > 0; looks -= 1) {
            await pause();
            if (drawn && document.querySelector(`#${PLACE} ${drawn}`)) { break; }
        }
        await pause(); // what it draws last
        maat.setProps(PLACE, { children: null });
    }

    maat.inIdleTime(() => {
        maat.layoutOf('samples').props.data.forEach((one) => maat.inIdleTime(() => draw(one)));
    });
})();
