/* Cells that are more than text. React escapes whatever they show. */
var dagcomponents = (window.dashAgGridComponentFunctions = window.dashAgGridComponentFunctions || {});

dagcomponents.MaatLink = function (props) {
    if (!props.data || !props.value) { return null; }
    var path = props.data[props.hrefField || 'href'];
    return React.createElement('a', {
        href: path,
        onClick: function (event) {
            if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) { return; }
            event.preventDefault();
            window.maatGo(path);
        },
    }, String(props.value));
};

dagcomponents.MaatState = function (props) {
    if (!props.data || !props.value) { return null; }
    return React.createElement('span', {className: 'state state-' + props.data.hue}, [
        React.createElement('span', {className: 'state-glyph', key: 'glyph'}, props.data.glyph), props.value]);
};

dagcomponents.MaatProgress = function (props) {
    if (!props.data || props.value === null || props.value === undefined) { return null; }
    var share = Math.max(0, Math.min(1, props.value));
    return React.createElement('span', {className: 'bar-cell'}, [
        React.createElement('span', {className: 'bar', key: 'bar'}, React.createElement('span', {className: 'bar-fill', style: {width: share * 100 + '%'}})),
        React.createElement('span', {className: 'bar-text', key: 'text'}, Math.floor(share * 100) + ' %')]);
};

dagcomponents.MaatGpus = function (props) {
    if (!props.data || !props.value) { return null; }
    return React.createElement('span', {className: 'gpu-cell'}, [
        props.data.colour ? React.createElement('span', {className: 'swatch', key: 'swatch', style: {backgroundColor: props.data.colour}}) : null, props.value]);
};
