/* Number fields keep what was typed. The library's drop what is no digit, and a point where the
   number is whole: `10m` and `1e9` would be read as 10 and 19, `2.5` as 25. A field whose value is
   such a text shows it as it is, says beside it why it is no number, and gives it to the page as a
   text, which no form takes for a number. */
(() => {
    'use strict';

    const library = window.dash_mantine_components;
    const { NumberInput, TextInput } = library;
    const { React } = window;
    const ONLY_OF_NUMBERS = [
        'allowDecimal', 'allowNegative', 'clampBehavior', 'decimalScale', 'hideControls', 'max',
        'min', 'step',
    ];
    const typed = new WeakMap(); // input -> what takes a text that is no number
    const sayOfWhole = 'Give a whole number, in digits alone, without a unit or an exponent.';
    const say = 'Give a number in digits, with a point before decimals, without a unit or an '
        + 'exponent.';

    // The library moves a longer number into the bounds of its field when one leaves it.
    function isTooLong(text) {
        const number = Number(text);
        return !Number.isNaN(number) && !Number.isSafeInteger(Math.trunc(number));
    }

    function isPlain(text, { allowDecimal, decimalScale }) {
        if (isTooLong(text)) { return false; }
        const [, , decimals] = /^-?\d*(\.(\d*))?$/.exec(text) || [null, null, null];
        if (!/^-?\d*(\.\d*)?$/.test(text)) { return false; }
        if (allowDecimal === false) { return !text.includes('.'); }
        return decimalScale === undefined || (decimals || '').length <= decimalScale;
    }

    function isText(value, props) {
        if (typeof value !== 'string') { return false; }
        return value !== '' && !isPlain(value, props);
    }

    function wordsOf(text, { allowDecimal, decimalScale }) {
        if (/^-?\d*(\.\d*)?$/.test(text) && isTooLong(text)) {
            return `“${text}” is too long a number. Give at most ${Number.MAX_SAFE_INTEGER}.`;
        }
        if (allowDecimal === false) { return `“${text}” is no whole number. ${sayOfWhole}`; }
        return isPlain(text, {})
            ? `“${text}” has too many decimals. Give at most ${decimalScale}.`
            : `“${text}” is no number. ${say}`;
    }

    function valueOf(text) {
        const number = Number(text);
        return text === '' || Number.isNaN(number) || isTooLong(text) ? text : number;
    }

    function NumberField(props) {
        const { id, value, setProps } = props;
        const domId = typeof id === 'object' ? window.dash_component_api.stringifyId(id) : id;
        const caret = React.useRef(null);
        const asText = isText(value, props);
        React.useLayoutEffect(() => {
            const input = document.getElementById(domId);
            if (!input) { return; }
            if (!asText) {
                typed.set(input, (text) => {
                    if (isPlain(text, props)) { return false; }
                    caret.current = input.selectionStart;
                    setProps({ value: text });
                    return true;
                });
            }
            if (caret.current !== null && input !== document.activeElement) {
                input.focus();
                input.setSelectionRange(caret.current, caret.current);
            }
            caret.current = null;
        });
        if (!asText) {
            return React.createElement(NumberInput, { ...props, clampBehavior: 'none' });
        }
        const rest = Object.fromEntries(
            Object.entries(props).filter(([name]) => !ONLY_OF_NUMBERS.includes(name)),
        );
        return React.createElement(TextInput, {
            ...rest,
            debounce: false,
            error: wordsOf(value, props),
            inputMode: props.allowDecimal === false ? 'numeric' : 'decimal',
            setProps: (changes) => {
                if (!('value' in changes)) { setProps(changes); return; }
                const text = changes.value.trim();
                if (text === value) { return; }
                const plain = isPlain(text, props);
                if (plain) { caret.current = document.getElementById(domId).selectionStart; }
                setProps({ ...changes, value: plain ? valueOf(text) : changes.value });
            },
        });
    }

    // Before the library sees it.
    window.addEventListener('input', (event) => {
        const take = typed.get(event.target);
        if (take && take(event.target.value)) { event.stopImmediatePropagation(); }
    }, true);

    window.dash_mantine_components = { ...library, NumberInput: NumberField };
})();
