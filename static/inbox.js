// The inbox: hears of changes as they happen, claims and renews by key. Without it the list is what it was when loaded.
"use strict";

(() => {
  const POLL_BESIDE_STREAM = 30_000, SHORTEST = 800, SHORTEST_UNSEEN = 5_000; // milliseconds
  const queue = () => document.querySelector("#queue");
  const typing = (element) => element.closest("input, textarea, select, dialog");
  let holding = false, streaming = false, renewed = Date.now(), waiting = 0;

  // Signals in quick succession are one request.
  const renew = () => {
    if (waiting) return;
    const pause = (document.hidden ? SHORTEST_UNSEEN : SHORTEST) - (Date.now() - renewed);
    waiting = setTimeout(() => {
      waiting = 0;
      renewed = Date.now();
      htmx.trigger(queue(), "changed");
    }, Math.max(0, pause));
  };
  const say = (text) => { document.querySelector("#live").textContent = text; };

  // One tab of the browser holds the stream and tells the others, because a browser keeps few connections to one host.
  const others = new BroadcastChannel("checkpoint-changes");
  others.onmessage = ({ data }) => {
    if (data === "hello") {
      if (holding) others.postMessage("live");
      return;
    }
    streaming = data !== "lost";
    say(streaming ? "Live" : "Looks again every 3 seconds");
    if (data === "changed") renew();
  };
  const tell = (word) => { others.postMessage(word); others.onmessage({ data: word }); };
  const listen = () => new Promise((end) => {
    const stream = new EventSource(queue().dataset.changes);
    stream.onopen = () => { holding = true; tell("changed"); };
    stream.onmessage = () => tell("changed");
    stream.onerror = () => {
      holding = false;
      tell("lost");
      if (stream.readyState === EventSource.CLOSED) setTimeout(end, 60_000);
    };
  });
  const hold = async () => { for (;;) await listen(); };

  // Beside a stream polling is only a precaution.
  document.addEventListener("htmx:config:request", (event) => {
    const { sourceElement, sourceEvent } = event.detail.ctx;
    if (sourceElement?.id !== "queue" || sourceEvent?.type !== "every") return;
    if (streaming && Date.now() - renewed < POLL_BESIDE_STREAM) event.preventDefault();
    else renewed = Date.now();
  });
  document.addEventListener("htmx:after:request", ({ detail: { ctx } }) => {
    if (ctx.sourceElement?.matches?.(".claim")) renew();
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) renew(); });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    const row = event.target.closest?.("#queue tr");
    const pressed = { c: () => row?.querySelector(".claim"), n: () => document.querySelector("#arrived") }[event.key]?.();
    pressed?.click();
  });
  document.addEventListener("DOMContentLoaded", () => {
    others.postMessage("hello");
    if (navigator.locks) navigator.locks.request("checkpoint-changes", hold);
    else hold();
  });
})();
