/* AG Grid is larger than all other scripts of a page: it comes with the first grid that is shown,
   or in idle time. The page names its address, and does not run it. */
(() => {
    'use strict';

    const { maat, React } = window;
    let grid = null, comes = null;

    /* The script replaces this component by its own. Put back, it keeps the grids that it drew. */
    function keep() {
        grid = window.dash_ag_grid.AgGrid;
        window.dash_ag_grid = { ...window.dash_ag_grid, AgGrid: GridLater };
    }

    const { src } = document.getElementById('grid-script').dataset;

    function asked() {
        comes = comes || maat.runScript(src).then(keep);
        return comes;
    }

    maat.inIdleTime(() => maat.fetchScript(src));
    maat.inIdleTime(asked);

    function GridLater(props) {
        const [there, tell] = React.useState(grid !== null);
        React.useEffect(() => {
            let shown = true;
            asked().then(() => shown && tell(true));
            return () => { shown = false; };
        }, []);
        return React.createElement(there ? grid : 'div', there ? props : { style: props.style });
    }

    GridLater.dashRenderType = true;
    // Dash runs the callbacks of a grid once it is there.
    Object.defineProperty(GridLater, '_dashprivate_isLazyComponentReady', {
        get: () => grid !== null || asked(),
    });
    window.dash_ag_grid = { AgGrid: GridLater };
})();
