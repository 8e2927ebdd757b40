/* AG Grid is larger than all other scripts of a page: it comes with the first grid that is shown.
   The page names its address, and does not run it. */
(() => {
    'use strict';

    const { React } = window;
    const AGAIN_MILLISECONDS = 3000;
    let grid = null, comes = null;

    function load() {
        const script = document.createElement('script');
        script.src = document.getElementById('grid-script').dataset.src;
        return new Promise((done, failed) => {
            script.onload = done;
            script.onerror = failed;
            document.head.append(script);
        });
    }

    /* The script replaces this component by its own. Put back, it keeps the grids that it drew. */
    function keep() {
        grid = window.dash_ag_grid.AgGrid;
        window.dash_ag_grid = { ...window.dash_ag_grid, AgGrid: GridLater };
    }

    function wait() {
        return load().then(keep, () => new Promise(
            (next) => { setTimeout(() => next(wait()), AGAIN_MILLISECONDS); },
        ));
    }

    function asked() {
        comes = comes || wait();
        return comes;
    }

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
