/* Cells that are more than text. React escapes whatever they show. */
(() => {
    'use strict';

    const dagcomponents = (window.dashAgGridComponentFunctions =
        window.dashAgGridComponentFunctions || {});
    const END_KEPT = 10;
    // Letters of scripts that run from right to left, and marks of direction.
    const RUNS_LEFT = /[\u0590-\u08ff\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc]/;

    dagcomponents.MaatLink = props => {
        if (!props.data) { return loadingCell(); }
        if (!props.value) { return null; }
        const path = props.data[props.hrefField || 'href'], name = String(props.value);
        return React.createElement('a', {
            className: props.cutInMiddle ? 'cut-in-middle' : undefined,
            title: props.cutInMiddle ? name : undefined,
            href: path,
            'aria-current': props.data.shown ? 'true' : undefined,
            onClick(event) {
                if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) { return; }
                event.preventDefault();
                window.maat.go(path);
            },
        }, props.cutInMiddle ? cutInMiddle(name) : name);
    };

    /* Two parts, of which the first gives way: names mostly differ at their ends. A name that also
       runs from right to left stays in one: its marks of direction turn what follows them. */
    function cutInMiddle(name) {
        const letters = Array.from(name);
        const end = RUNS_LEFT.test(name) ? letters.length : Math.max(0, letters.length - END_KEPT);
        const part = (of, className) => (
            React.createElement('span', {key: className, className}, of.join('')));
        return [
            part(letters.slice(0, end), 'cut-begin'), part(letters.slice(end), 'cut-end'),
        ];
    }

    dagcomponents.MaatState = props => {
        if (!props.data) { return loadingCell(); }
        if (!props.value) { return null; }
        return React.createElement('span', {className: `state state-${props.data.hue}`}, [
            React.createElement('span', {className: 'state-glyph', key: 'glyph'}, props.data.glyph),
            props.value]);
    };

    dagcomponents.MaatProgress = props => {
        if (!props.data) { return loadingCell(); }
        if (props.value === null || props.value === undefined) { return null; }
        const share = Math.max(0, Math.min(1, props.value));
        const width = `${share * 100}%`, text = `${Math.floor(share * 100)} %`;
        const fill = React.createElement('span', {className: 'bar-fill', style: {width}});
        return React.createElement('span', {className: 'bar-cell'}, [
            React.createElement('span', {className: 'bar', key: 'bar'}, fill),
            React.createElement('span', {className: 'bar-text', key: 'text'}, text)]);
    };

    dagcomponents.MaatGpus = props => {
        if (!props.data) { return loadingCell(); }
        if (!props.value) { return null; }
        const {colour} = props.data, style = {backgroundColor: colour};
        return React.createElement('span', {className: 'gpu-cell'}, [
            colour && React.createElement('span', {className: 'swatch', key: 'swatch', style}),
            props.value]);
    };

    /* Who holds the GPUs of a node: a link for each job that may be shown. */
    dagcomponents.MaatHolders = props => {
        const held = (props.value || []).filter(stretch => stretch.kind === 'job');
        const parts = [];
        held.forEach((stretch, place) => {
            const words = stretch.name + (stretch.count > 1 ? ` (${stretch.count})` : '');
            const link = {
                field: 'href', data: {href: `/jobs/${stretch.job}`}, value: words, key: place,
            };
            if (place) { parts.push(', '); }
            parts.push(stretch.job ? React.createElement(dagcomponents.MaatLink, link) : words);
        });
        const title = held.map(stretch => stretch.name).join(', ');
        return React.createElement('span', {title}, parts);
    };

    dagcomponents.MaatDrain = props => {
        if (!props.data) { return null; }
        const action = props.data.drained ? 'restore' : 'drain';
        return React.createElement('button', {
            type: 'button',
            className: 'cell-button',
            'aria-label': `${action} ${props.data.name}`,
            'data-press': 'cluster-pressed',
            'data-what': JSON.stringify({action, node: props.data.name}),
        }, action === 'drain' ? 'Drain' : 'Restore');
    };

    /* In a row of a list that is read as one scrolls, until it has come. */
    function loadingCell() {
        return React.createElement('span', {className: 'loading-line loading'});
    }

    /* In place of rows that have not come yet. */
    dagcomponents.MaatLoading = () => {
        const line = (width, place) => React.createElement(
            'span', {key: place, className: 'loading-line', style: {width: `${width}%`}});
        return React.createElement(
            'div',
            {className: 'loading-lines loading', role: 'status', 'aria-label': 'Loading'},
            [92, 84, 96, 78, 88, 72].map(line));
    };
})();
