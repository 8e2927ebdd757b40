/* Shows the log of a command's rank: appends what comes, keeps the last lines, and stays at the end
   unless the reader has scrolled up. Text is only ever set as text. As a terminal does, it shows of
   a line what was written last after a carriage return; escape codes are left out. */
(() => {
    'use strict';

    const { maat } = window;
    const MOST_LINES = 2000;
    const MOST_CHARACTERS = 500000;
    // colours and moves; titles and links; codes of two characters
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
        const lines = text.replace(ESCAPES, '').split('\n'), last = lines.pop();
        return [...lines.map(line => overwritten(line, '')), overwritten(last, '\r')].join('\n');
    }

    /* What is seen of a line. `then`: what stays of carriage returns at its end; of the last line,
       which may go on, one. No regular expression: those are slow on long lines. */
    function overwritten(line, then) {
        let end = line.length;
        while (line[end - 1] === '\r') { end -= 1; }
        const seen = end ? line.slice(line.lastIndexOf('\r', end - 1) + 1, end) : '';
        return end < line.length ? seen + then : seen;
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
