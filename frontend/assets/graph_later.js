/* A chart is drawn once its figure has come. Dash would first draw an empty one in its place, and
   would ask for no figure before the script of charts has run. The script comes with the first
   chart, or in idle time. */
(() => {
    'use strict';

    const { maat, React } = window;
    const { Graph } = window.dash_core_components;
    let comes = null;

    function waits({ figure }) {
        const { meta } = (figure && figure.layout) || {};
        return Boolean(meta) && meta.state === 'waiting';
    }

    const { src } = document.getElementById('charts-script').dataset;

    /* Draws one chart after the other, each in a task of its own: those of a page get their figures
       at once, and the reader waits for none of them to type or to scroll. */
    function takeTurns() {
        const { react } = window.Plotly;
        let turn = Promise.resolve();
        window.Plotly.react = (place, figure, ...more) => {
            const draw = () => (
                place.isConnected ? react(place, maat.withNames(place, figure), ...more) : place
            );
            const task = () => new Promise((next) => { setTimeout(next, 0); });
            const done = turn.then(task).then(draw);
            turn = done.catch(() => {});
            return done;
        };
    }

    function asked() {
        comes = comes || maat.runScript(src).then(takeTurns);
        return comes;
    }

    maat.inIdleTime(() => maat.fetchScript(src));
    maat.inIdleTime(asked);

    function GraphLater(props) {
        const [there, tell] = React.useState(window.Plotly !== undefined);
        React.useEffect(() => {
            let shown = true;
            if (!there) { asked().then(() => shown && tell(true)); }
            return () => { shown = false; };
        }, []);
        if (there && !waits(props)) { return React.createElement(Graph, props); }
        const { id, style } = props;
        return React.createElement('div', { id, style, className: 'dash-graph' });
    }

    window.dash_core_components = { ...window.dash_core_components, Graph: GraphLater };
})();
