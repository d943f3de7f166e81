// Ticking in the queue: all of a page at once, by key, and how many are ticked. Without it the boxes are ordinary boxes.
"use strict";

(() => {
  const boxes = () => [...document.querySelectorAll('input[form="bulk"][type="checkbox"]')];
  const show = () => {
    const every = boxes();
    const ticked = every.filter((box) => box.checked).length;
    const count = document.querySelector("#ticked");
    const all = document.querySelector("#tick-all");
    if (count) count.textContent = ticked ? ` (${ticked})` : "";
    if (!all) return;
    all.hidden = !every.length;
    all.checked = ticked > 0 && ticked === every.length;
    all.indeterminate = ticked > 0 && ticked < every.length;
  };
  document.addEventListener("change", (event) => {
    if (event.target.id === "tick-all") boxes().forEach((box) => { box.checked = event.target.checked; });
    if (event.target.closest(".tick") && event.target.checked) document.querySelector("details.many").open = true;
    show();
  });
  // x ticks the row that j and k have come to.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "x" || event.ctrlKey || event.metaKey || event.altKey) return;
    const row = event.target.closest("[data-row]")?.closest("tr");
    row?.querySelector('input[form="bulk"]')?.click();
  });
  document.addEventListener("htmx:after:swap", show);
  document.addEventListener("DOMContentLoaded", show);
})();
