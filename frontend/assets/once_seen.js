/* Draws a part of the page once its place is shown: unfolded, or no longer hidden
   (components/once_seen.py). `seen` is a prop: what changes it has Dash make the children anew, of
   what its store holds by then. */
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
