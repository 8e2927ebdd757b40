/* Shows the log of a command's rank: appends what comes, keeps the last lines, and stays at the end
   unless the reader has scrolled up. Text is only ever set as text. */
(() => {
    'use strict';

    const { maat } = window;
    const MOST_LINES = 2000;
    const NEAR = 24;  // pixels from the end that still count as at the end

    function lastLines(text) {
        const lines = text.split('\n');
        return lines.length > MOST_LINES + 1 ? lines.slice(-MOST_LINES - 1).join('\n') : text;
    }

    function whole(part) {
        return part.cut ? part.text.slice(part.text.indexOf('\n') + 1) : part.text;
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
            box.textContent = lastLines(before + (part.reset ? whole(part) : part.text));
            if (atEnd || part.reset) {
                box.scrollTop = box.scrollHeight;
            }
            return {key: part.key, next_offset: part.next_offset, ended: part.ended};
        },
    });
})();
