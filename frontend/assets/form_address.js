/* What was typed into a form stands in its address, so that a reload keeps it and a link shows
   others the same form. Values that the form has by itself are left out. An answer that the form
   was asked for is marked once the form holds something else. */
(() => {
    'use strict';

    const { maat } = window;
    const WAIT = 200; // milliseconds: several fields change at once
    const LONGEST = 1000; // characters of a value, as in components/form_address.py
    let writing = null;

    /* A field's value as it stands in the address: texts, none if it is empty. */
    const textsOf = (value) => [].concat(value === null || value === undefined ? [] : value)
        .map(String).filter((text) => text !== '');

    const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

    /* What differs in the fields of a form from what it holds by itself. */
    function differing(fields, usual, nameOf) {
        const found = { empty: [] }, tooLong = [];
        fields.forEach(({ id, value }) => {
            const name = nameOf(id), texts = textsOf(value), before = textsOf(usual[name]);
            if (isSame(texts, before)) { return; }
            if (!texts.length) { found.empty.push(name); }
            if (texts.some((text) => text.length > LONGEST)) { tooLong.push(id); return; }
            found[name] = texts;
        });
        return { found, tooLong };
    }

    function labelOf(id, nameOf) {
        const label = document.querySelector(`label[for="${id}"]`);
        return (label ? label.textContent : nameOf(id)).replace(/\s*\*$/, '');
    }

    const asked = new WeakMap(); // of the mark of an answer: what the form held when it was asked
    let held = null, touched = true; // since a question was asked

    function mark() {
        const place = document.querySelector('.changed-since');
        if (!place || !asked.has(place)) { return; }
        maat.setProps(place.id, { hidden: asked.get(place) === held });
    }

    /* Notes what the form of the page holds. What comes before the visitor does something else was
       typed before the question was asked: a busy browser tells it late. */
    maat.noteForm = (values) => {
        held = JSON.stringify(values);
        if (!touched) { noteAsked(); }
        mark();
    };

    function noteAsked() {
        const place = document.querySelector('.changed-since');
        if (place) { asked.set(place, held); }
    }

    document.addEventListener('click', (event) => {
        if (!maat.around(event.target, '[data-asks]')) { return; }
        touched = false;
        noteAsked();
        mark();
    });
    ['pointerdown', 'keydown', 'input'].forEach((kind) => {
        document.addEventListener(kind, () => { touched = true; }, true);
    });

    /* Writes the form of the page at `path` into its address; returns what is too long for it.
       `inputs`: all its fields. `shown`: those that count. `usual`: what they hold of
       themselves. */
    maat.formInUrl = (path, nameOf, { inputs, shown, usual }) => {
        const { found, tooLong } = differing(shown, usual, nameOf);
        const absent = Object.fromEntries(inputs.map(({ id }) => [nameOf(id), null]));
        maat.noteForm(found);
        clearTimeout(writing);
        writing = setTimeout(() => {
            if (window.location.pathname === path) { maat.setQuery({ ...absent, ...found }); }
        }, WAIT);
        const names = tooLong.map((id) => labelOf(id, nameOf)).join(', ');
        return names ? `Too long for this page's address: ${names}.` : '';
    };
})();
