/* Draws a part of the page once its place is shown: unfolded, or no longer hidden
   (components/once_seen.py). `seen` is in Dash's store: a change of it has Dash create the children
   again, from what the store holds by then. Those created with the page may be out of date. */
(() => {
    'use strict';

    function OnceSeen({ children, seen, setProps }) {
        const { React } = window; // Dash's, which comes after this script
        const place = React.useRef(null);
        React.useEffect(() => {
            if (seen) { return undefined; }
            const observer = new ResizeObserver(([entry]) => {
                if (entry.contentRect.height) { setProps({ seen: true }); }
            });
            observer.observe(place.current);
            return () => observer.disconnect();
        }, [seen]);
        return seen ? children : React.createElement('div', { ref: place, className: 'not-drawn' });
    }

    window.maat_parts = { OnceSeen };
})();
