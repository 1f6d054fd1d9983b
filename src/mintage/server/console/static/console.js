// The console works without this file. It adds the choice of a theme, local times, the pause of live pages,
// and buttons that copy.
"use strict";
(() => {
  const root = document.documentElement;
  const store = {
    get: (name) => { try { return localStorage.getItem(name) || ""; } catch { return ""; } },
    set: (name, value) => { try { localStorage.setItem(name, value); } catch { /* the choice lasts for this page */ } },
  };
  const paint = (theme) => theme ? root.setAttribute("data-theme", theme) : root.removeAttribute("data-theme");
  paint(store.get("mintage-theme")); // before the page is drawn

  let paused = false;

  const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
  const refresh = () => {
    for (const time of document.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (!isNaN(at)) time.title = local.format(at);
    }
    const pause = document.querySelector("button.pause");
    if (pause) pause.textContent = paused ? "Go on" : "Pause";
  };
  const offline = (yes) => { document.getElementById("offline").hidden = !yes; };

  document.addEventListener("DOMContentLoaded", () => {
    const theme = document.getElementById("theme");
    theme.value = store.get("mintage-theme");
    theme.addEventListener("change", () => { store.set("mintage-theme", theme.value); paint(theme.value); });
    refresh();
    // A text to copy gets a button. Without the clipboard, as on plain HTTP from another machine, it is selected.
    for (const text of document.querySelectorAll("code.copy")) {
      const button = Object.assign(document.createElement("button"), { type: "button", className: "quiet", textContent: "Copy" });
      button.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText(text.textContent);
          button.textContent = "Copied";
        } catch {
          getSelection().selectAllChildren(text);
        }
      });
      text.after(" ", button);
    }
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("button.pause")) { paused = !paused; refresh(); }
  });
  // A tab that nobody sees asks for nothing, and what somebody types is not replaced.
  const isTyping = (main) => main.contains(document.activeElement) && document.activeElement.matches("input, select")
    || [...main.querySelectorAll("input")].some((each) => each.value !== each.defaultValue);
  document.addEventListener("htmx:before:request", (event) => {
    const main = event.target;
    if (main.id === "main" && (paused || document.hidden || isTyping(main))) event.preventDefault();
  });
  // A proxy whose service is away answers with a page of its own, which must not replace this one.
  document.addEventListener("htmx:after:request", (event) => {
    const isOurs = event.detail.ctx.text.includes('<main id="main"');
    offline(!isOurs);
    if (!isOurs) event.preventDefault();
  });
  document.addEventListener("htmx:error", () => offline(true));
  document.addEventListener("htmx:after:swap", refresh);
})();
