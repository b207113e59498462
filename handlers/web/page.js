/* Renews <main> every 5 s, pauses while the page is hidden, and adds buttons that copy. */
(function () {
    "use strict";
    var EVERY_MS = 5000, paused = false, timer = 0;
    var button = document.getElementById("pause"), note = document.getElementById("age");

    function addCopies() {
        document.querySelectorAll("main pre").forEach(function (pre) {
            var copy = document.createElement("button");
            copy.textContent = "Copy";
            copy.onclick = function () {
                navigator.clipboard.writeText(pre.textContent);
                copy.textContent = "Copied";
            };
            pre.after(copy);
        });
    }

    function take(text) {
        var next = new DOMParser().parseFromString(text, "text/html").querySelector("main");
        var now = document.querySelector("main"), focused = document.activeElement;
        var inside = now.contains(focused) && focused.tagName;
        if (!next || inside === "BUTTON" || String(window.getSelection())) { return; }
        now.replaceWith(document.adoptNode(next));
        addCopies();
        now.querySelectorAll("details").forEach(function (d) { // they stay open or closed
            (document.getElementById(d.id) || d).open = d.open;
        });
        next.querySelectorAll("a,summary").forEach(function (a) {
            var same = a.href === focused.href && a.parentNode.id === focused.parentNode.id;
            return inside && same && document.activeElement === document.body && a.focus();
        });
    }

    function renew() {
        timer = 0;
        fetch(location.href, {cache: "no-store"}).then(function (answer) {
            return answer.ok ? answer.text() : Promise.reject(answer.status);
        }).then(take).then(function () { note.textContent = ""; }, function () {
            note.textContent = "The server does not answer; this is the last state that was read.";
        }).then(plan);
    }

    function plan() {
        timer = timer || paused || document.hidden ? timer : setTimeout(renew, EVERY_MS);
    }

    button.hidden = false;
    button.addEventListener("click", function () {
        paused = !paused;
        button.textContent = paused ? "Go on" : "Pause";
        timer = clearTimeout(timer);
        plan();
    });
    document.addEventListener("visibilitychange", plan);
    addCopies();
    plan();
}());
