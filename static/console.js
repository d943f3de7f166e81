// What the pages gain with JavaScript. Without it every page reads and every decision works.
"use strict";

(() => {
  const one = (selector) => document.querySelector(selector);
  const typing = (element) => element.closest("input, textarea, select, [contenteditable]");

  // j and k move over the rows of a list; Enter is the link's own.
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    const step = { j: 1, k: -1 }[event.key];
    if (!step) return;
    const rows = [...document.querySelectorAll("[data-row]")];
    const here = rows.findIndex((row) => row.closest("tr").contains(document.activeElement));
    const next = here < 0 ? (step > 0 ? 0 : rows.length - 1) : here + step;
    rows[next]?.focus();
    if (rows[next]) event.preventDefault();
  });

  // "/" goes to the search of the page, "?" says which keys there are.
  const press = { "/": () => one('input[type="search"]')?.focus(), "?": () => one("#keys").showModal() };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || !press[event.key]) return;
    event.preventDefault();
    press[event.key]();
  });
  document.addEventListener("click", (event) => { if (event.target.closest("[data-keys]")) press["?"](); });

  // The tab says how many questions are open, also while nobody looks at it.
  const title = document.title;
  const count = () => {
    const open = one("#nav-review .count")?.firstChild.nodeValue ?? "";
    document.title = open ? `(${open}) ${title}` : title;
    const icon = one('link[rel="icon"]');
    icon.dataset.plain ??= icon.href;
    const text = open.length > 2 ? "99" : open;
    const dot = `<circle cx="22" cy="22" r="10" fill="#c2410c"/><text x="22" y="26.5" text-anchor="middle" font-family="sans-serif" font-weight="700" font-size="${text.length > 1 ? 12 : 14}" fill="#fff">${text}</text>`;
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#1d4f91"/>${dot}</svg>`;
    const href = open ? `data:image/svg+xml,${encodeURIComponent(svg)}` : icon.dataset.plain;
    if (icon.href !== href) icon.href = href;
  };

  // Copy buttons and key hints exist only where they work.
  const reveal = () => {
    document.querySelectorAll(".keys").forEach((hint) => { hint.hidden = false; });
    if (!navigator.clipboard) return;
    document.querySelectorAll(".copy").forEach((button) => { button.hidden = false; });
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest(".copy");
    if (!button) return;
    const label = button.textContent;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed: select it";
    }
    setTimeout(() => { button.textContent = label; }, 2000);
  });

  // Relative times go on between two answers of the server.
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const distance = (seconds) => {
    const unit = units.find(([size]) => Math.abs(seconds) >= size);
    if (!unit) return "now";
    const amount = `${Math.floor(Math.abs(seconds) / unit[0])} ${unit[1]}`;
    return seconds > 0 ? `${amount} ago` : `in ${amount}`;
  };
  const tick = () => document.querySelectorAll("time").forEach((time) => {
    const text = distance((Date.now() - Date.parse(time.dateTime)) / 1000);
    const node = time.firstChild;
    if (node?.nodeType === Node.TEXT_NODE && node.nodeValue.trim() !== text) {
      node.nodeValue = time.childElementCount ? `${text} ` : text;
    }
  });

  // A tab that nobody looks at does not poll.
  document.addEventListener("htmx:config:request", (event) => {
    if (document.hidden && event.detail.ctx.sourceEvent.type === "every") event.preventDefault();
  });

  // Every outcome of a request shows: a lost connection here, a refusal in #notice. What works again clears its own.
  let refused = null;
  document.addEventListener("htmx:error", () => { one("#offline").hidden = false; });
  document.addEventListener("htmx:after:request", ({ detail: { ctx } }) => {
    one("#offline").hidden = true;
    if (ctx.response.headers.get("HX-Retarget") === "#notice") refused = ctx.sourceElement.id;
    else if (refused === ctx.sourceElement.id) one("#notice").replaceChildren();
  });

  document.addEventListener("htmx:after:swap", () => { reveal(); tick(); count(); });
  document.addEventListener("DOMContentLoaded", () => { reveal(); tick(); count(); setInterval(tick, 5000); });
})();
