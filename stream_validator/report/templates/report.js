"use strict";
(() => {
  const root = document.documentElement;
  const remember = (name, value) => { try { localStorage.setItem("glp-report-" + name, value); } catch { /* file:// may refuse */ } };
  const recall = (name) => { try { return localStorage.getItem("glp-report-" + name); } catch { return null; } };
  const asked = new URLSearchParams(location.search);
  const each = (selector, action) => document.querySelectorAll(selector).forEach(action);

  // Language: the style sheet shows one language; attributes and titles are swapped here.
  const setLanguage = (language) => {
    const code = language === "en" ? "en" : "pt-BR";
    root.lang = code;
    root.dataset.lang = code;
    each("[data-pt]", (element) => {
      const text = code === "en" ? element.dataset.en : element.dataset.pt;
      if (element.dataset.attribute) element.setAttribute(element.dataset.attribute, text);
      else element.textContent = text;
    });
    each("[data-set-lang]", (button) => button.setAttribute("aria-pressed", String(button.dataset.setLang === code)));
    remember("lang", code);
  };
  const setTheme = (theme) => {
    const name = ["light", "dark"].includes(theme) ? theme : "auto";
    root.dataset.theme = name;
    each("[data-set-theme]", (button) => button.setAttribute("aria-pressed", String(button.dataset.setTheme === name)));
    remember("theme", name);
  };
  each("[data-set-lang]", (button) => button.addEventListener("click", () => setLanguage(button.dataset.setLang)));
  each("[data-set-theme]", (button) => button.addEventListener("click", () => setTheme(button.dataset.setTheme)));
  setLanguage(asked.get("lang") || recall("lang") || "pt-BR");
  setTheme(asked.get("theme") || recall("theme") || "auto");
  document.getElementById("print").addEventListener("click", () => window.print());

  // Filters: words are looked for without case and accents, in both languages and in the closed details.
  const plain = (text) => text.normalize("NFD").replace(/[\u0300-\u036f]/g, "").toLowerCase();
  const alerts = [...document.querySelectorAll("#alert-list > details")];
  const texts = new Map();
  const textOf = (alert) => {
    if (!texts.has(alert)) {
      const text = plain(alert.textContent);
      texts.set(alert, text + " " + text.replace(/[.\/-]/g, ""));
    }
    return texts.get(alert);
  };
  const form = document.getElementById("filters");
  const count = document.querySelector("#count b");
  const apply = () => {
    const wanted = ["rule", "uf", "outcome", "state"].map((name) => [name, form.elements[name].value]).filter((pair) => pair[1]);
    const words = plain(form.elements.text.value).split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const alert of alerts) {
      const fits = wanted.every(([name, value]) => alert.dataset[name] === value) &&
        words.every((word) => textOf(alert).includes(word));
      alert.hidden = !fits;
      if (fits) shown += 1;
    }
    count.textContent = new Intl.NumberFormat(root.lang).format(shown);
    document.getElementById("nothing").hidden = shown > 0;
  };
  let waiting = 0;
  const soon = () => { clearTimeout(waiting); waiting = setTimeout(apply, 120); };
  form.addEventListener("input", soon);
  form.addEventListener("change", soon);
  form.addEventListener("reset", () => setTimeout(apply));
  form.addEventListener("submit", (event) => { event.preventDefault(); apply(); });
  const setOpen = (open) => alerts.forEach((alert) => { if (!alert.hidden) alert.open = open; });
  document.getElementById("expand").addEventListener("click", () => setOpen(true));
  document.getElementById("collapse").addEventListener("click", () => setOpen(false));

  // What a link leads to must not lie under the bar of filters, which sticks to the top of wide windows.
  const measure = () => {
    const high = getComputedStyle(form).position === "sticky" ? form.offsetHeight : 0;
    root.style.setProperty("--bar", high + "px");
  };
  new ResizeObserver(measure).observe(form);
  measure();

  // A link to one alert opens it, whatever the filters hide.
  const follow = () => {
    const target = location.hash.startsWith("#a-") ? document.getElementById(location.hash.slice(1)) : null;
    if (target === null) return;
    target.hidden = false;
    target.open = true;
    target.scrollIntoView();
  };
  window.addEventListener("hashchange", follow);
  follow();
})();
