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

    function asked() {
        comes = comes || maat.runScript(src);
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
