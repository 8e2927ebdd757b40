/* Functions that the grids name. Colours are the page's own variables, so light and dark need no
   second theme. */
(() => {
    'use strict';

    const dagfuncs = (window.dashAgGridFunctions = window.dashAgGridFunctions || {});

    dagfuncs.maatTheme = theme => theme.withParams({
        browserColorScheme: 'inherit',
        fontFamily: 'inherit',
        fontSize: 13,
        headerFontSize: 12,
        headerFontWeight: 500,
        backgroundColor: 'var(--card)',
        foregroundColor: 'var(--text)',
        headerBackgroundColor: 'var(--card)',
        headerTextColor: 'var(--muted)',
        borderColor: 'var(--line)',
        rowHoverColor: 'var(--hover)',
        selectedRowBackgroundColor: 'var(--selected)',
        accentColor: 'var(--accent)',
        valueChangeValueHighlightBackgroundColor: 'var(--selected)',
        wrapperBorder: false,
        wrapperBorderRadius: 0,
        cellHorizontalPadding: 5,
        columnBorder: false,
    });
})();
