"use strict";
// A run is drawn as it goes; where this script does not run, a page that is loaded again says the same.
const live = document.querySelector("[data-live]");
if (live) {
  const events = new EventSource(live.dataset.live);
  events.addEventListener("state", event => { live.innerHTML = event.data; });
  events.addEventListener("ended", () => { events.close(); location.reload(); });
}
// A job is checked as it is typed; the button checks it as well.
const form = document.querySelector("[data-check]");
if (form) {
  const found = document.getElementById("found");
  let waiting, last = 0;
  const check = async () => {
    const own = ++last;
    const body = new URLSearchParams(new FormData(form));
    try {
      const reply = await fetch(form.dataset.check, { method: "POST", body });
      const text = await reply.text();
      if (own !== last) return;
      if (reply.ok) found.innerHTML = text;
      else found.textContent = "Not checked. Load this page again.";
    } catch {
      found.textContent = "Not checked: the coordinator does not answer.";
    }
  };
  form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(check, 400); });
}
