"use strict";
// Makes the ranking sortable and filterable. Nothing is fetched.
(function () {
  document.documentElement.classList.add("js");

  var table = document.getElementById("ranking");
  if (!table) return;
  var body = table.tBodies[0], heads = Array.from(table.tHead.rows[0].cells);
  var filter = document.getElementById("filter"), family = document.getElementById("family");
  var buy = document.getElementById("buy"), all = document.getElementById("all"), shown = document.getElementById("shown");
  var first = body.rows.length - body.querySelectorAll("tr.more").length;
  var everything = false;

  // Of the rows that match, the first few until somebody asks for all or looks for something.
  function show() {
    var words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    var narrowed = words.length || family.value || buy.value;
    var matching = 0, visible = 0;
    Array.from(body.rows).forEach(function (row) {
      var text = (row.textContent + " " + row.dataset.family).toLowerCase();
      var fits = words.every(function (word) { return text.includes(word); }) &&
        (!family.value || row.dataset.family === family.value) && (!buy.value || row.dataset.buy === buy.value);
      matching += fits ? 1 : 0;
      row.hidden = !fits || !(everything || narrowed || matching <= first);
      visible += row.hidden ? 0 : 1;
    });
    shown.textContent = visible + " of " + body.rows.length + " shown";
  }

  function compare(a, b) {
    var x = Number(a), y = Number(b);
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
  }

  function sort(at) {
    var down = heads[at].getAttribute("aria-sort") === "ascending";
    heads.forEach(function (head) { head.removeAttribute("aria-sort"); });
    heads[at].setAttribute("aria-sort", down ? "descending" : "ascending");
    var rows = Array.from(body.rows);
    rows.sort(function (one, other) {
      var a = one.cells[at].dataset.key, b = other.cells[at].dataset.key;
      if (a === undefined || b === undefined) return (a === undefined) - (b === undefined); // unknown is last, either way
      return down ? compare(b, a) : compare(a, b);
    });
    rows.forEach(function (row) { body.appendChild(row); });
    table.classList.toggle("sorted", at !== 0 || down);
    show();
  }

  heads.forEach(function (head, at) {
    var button = head.querySelector("span");
    button.addEventListener("click", function () { sort(at); });
    button.addEventListener("keydown", function (event) {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(at); }
    });
  });
  [filter, family, buy].forEach(function (field) { field.addEventListener("input", show); });
  if (all) all.addEventListener("click", function () { everything = true; all.hidden = true; show(); });
  show();
})();
