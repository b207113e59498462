/*
 * The search of the manual: reads the index when the box is used first, and lists the sections that
 * have all words. Those with a word in their heading come first.
 */
(function () {
    "use strict";
    var SHOWN_MAX = 30, AROUND = 70, index = null;
    var form = document.getElementById("search"), box = document.getElementById("words");
    var found = document.getElementById("found"), count = document.getElementById("count");

    function add(parent, name, text) {
        var element = document.createElement(name);
        element.textContent = text;
        return parent.appendChild(element);
    }

    /* The times that words are in heading or text, those of the heading first; 0 if one is not. */
    function rank(section, words) {
        var title = (section[1] + " " + section[2]).toLowerCase(), text = section[3].toLowerCase();
        return words.reduce(function (sum, word) {
            var inTitle = title.includes(word);
            return sum && (inTitle || text.includes(word)) && sum + (inTitle ? 1000 : 1);
        }, 1);
    }

    function show(section, words) {
        var item = add(found, "li", ""), at = section[3].toLowerCase().indexOf(words[0]);
        var from = Math.max(0, at - AROUND);
        add(item, "a", section[1] === section[2] ? section[1] : section[1] + ": " + section[2])
            .href = section[0];
        add(item, "p", section[3].slice(from, from + 2 * AROUND)).className = "note";
    }

    function search() {
        var words = box.value.toLowerCase().split(/\s+/).filter(Boolean), hits;
        found.textContent = count.textContent = "";
        found.hidden = !index || !words.length;
        if (found.hidden) {
            return;
        }
        hits = index.map(function (section) { return [rank(section, words), section]; })
            .filter(function (hit) { return hit[0]; })
            .sort(function (a, b) { return b[0] - a[0]; });
        count.textContent = hits.length + " found";
        hits.slice(0, SHOWN_MAX).forEach(function (hit) { show(hit[1], words); });
    }

    box.addEventListener("focus", function () {
        fetch("/docs/search.json").then(function (answer) { return answer.json(); })
            .then(function (sections) { index = sections; search(); });
    }, {once: true});
    box.addEventListener("input", search);
    form.addEventListener("submit", function (event) { event.preventDefault(); });
    form.hidden = false;
}());
