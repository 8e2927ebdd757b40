/* Shows the log of a command's rank: appends what comes, keeps the last lines, and stays at the end
   unless the reader has scrolled up. Text is only ever set as text. As a terminal does, it shows of
   a line what was written last after a carriage return; escape codes are left out. */
(() => {
    'use strict';

    const { maat } = window;
    const MOST_LINES = 2000;
    const MOST_CHARACTERS = 500000;
    // CSI (colours, moves), OSC (titles, links), and other codes of two characters
    const ESCAPES = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])/g;
    const NEAR = 24;  // pixels from the end that still count as at the end

    function lastLines(text) {
        const lines = text.slice(-MOST_CHARACTERS).split('\n');
        return lines.slice(-MOST_LINES - 1).join('\n');
    }

    /* A cut log begins with its first whole line; if it has none, as it is. */
    function whole(part) {
        return (part.cut && part.text.slice(part.text.indexOf('\n') + 1)) || part.text;
    }

    function plain(text) {
        return text.replace(ESCAPES, '').replace(/\r+\n/g, '\n').replace(/[^\n]*\r(?=[^\r\n])/g, '');
    }

    maat.callbacks({
        appendLog: (part, at) => {
            const box = document.getElementById('job-log');
            if (!part || !box) {
                return maat.noUpdate();
            }
            const goesOn = at && at.key === part.key && at.next_offset === part.offset;
            if (!part.reset && !goesOn) {
                return maat.noUpdate();  // asked for twice, and shown already
            }
            const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
            const before = part.reset ? '' : box.textContent;
            const text = before + (part.reset ? whole(part) : part.text);
            box.textContent = lastLines(plain(text));
            if (atEnd || part.reset) {
                box.scrollTop = box.scrollHeight;
            }
            return {key: part.key, cut: part.cut, next_offset: part.next_offset, ended: part.ended};
        },
    });
})();
