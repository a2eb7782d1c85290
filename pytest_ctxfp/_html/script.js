"use strict";
// Works on what the page already shows: it hides, orders and opens, and never writes markup.
(() => {
  const root = document.documentElement;
  const find = (id) => document.getElementById(id);

  const theme = find("theme");
  const systemDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : systemDark.matches);
  const nameTheme = () => { theme.textContent = isDark() ? "Light theme" : "Dark theme"; };
  const remember = (value) => { try { localStorage.setItem("ctxfp-theme", value); } catch { /* a file may have no storage */ } };
  const recall = () => { try { return localStorage.getItem("ctxfp-theme"); } catch { return null; } };
  if (["light", "dark"].includes(recall())) root.dataset.theme = recall();
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remember(root.dataset.theme);
    nameTheme();
  });
  systemDark.addEventListener("change", nameTheme);
  nameTheme();
  theme.hidden = false;

  const openTarget = () => {
    const target = location.hash.length > 1 ? find(decodeURIComponent(location.hash.slice(1))) : null;
    if (!target) return;
    target.hidden = false;
    const details = target.matches("details") ? target : target.querySelector("details");
    if (!details || !/^(case|diff)-/.test(target.id)) return;
    details.open = true;
    target.scrollIntoView({ block: "start" });
    details.querySelector("summary").focus({ preventScroll: true });
  };
  addEventListener("hashchange", openTarget);
  // A link to where one is already changes no hash.
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest('a[href^="#"]');
    if (link && link.hash === location.hash) openTarget();
  });

  const table = find("table");
  if (!table) return;
  const form = find("filters");
  const cases = [...table.tBodies];
  const collator = new Intl.Collator(undefined, { numeric: true });
  const read = (body) => ({
    body,
    number: Number(body.dataset.number),
    name: body.querySelector(".name").textContent,
    tags: [...body.querySelectorAll(".tag")].map((tag) => tag.textContent),
    text: [".row > th", "summary", ".question", ".reason"].map((one) => body.querySelector(one)?.textContent)
      .join(" ").toLowerCase(),
  });
  let entries = null;
  const all = () => (entries ??= cases.map(read));

  const chosen = (id) => {
    const select = find(id);
    return select && select.value ? select.selectedOptions[0].textContent : null;
  };
  const filter = () => {
    const words = find("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const state = chosen("by-state"), tag = chosen("by-tag"), origin = chosen("by-origin");
    const kind = chosen("by-kind"), verdict = chosen("by-verdict"), label = chosen("by-label");
    const flaky = find("by-flaky").checked;
    let shown = 0;
    for (const { body, tags, text } of all()) {
      const data = body.dataset;
      const fits = (state === null || data.state === state)
        && (tag === null || tags.includes(tag))
        && (origin === null || data.origin.split(" ").includes(origin))
        && (kind === null || data.kind === kind)
        && (verdict === null || data.verdict === verdict)
        && (label === null || data.label === label)
        && (!flaky || "flaky" in data)
        && words.every((word) => text.includes(word));
      if (body.hidden === fits) body.hidden = !fits;
      shown += fits;
    }
    find("count").textContent = `${shown.toLocaleString("en")} of ${cases.length.toLocaleString("en")} cases shown`;
    find("none").hidden = shown > 0;
  };

  const compare = (key, numeric) => {
    if (key === "name") return (one, other) => collator.compare(one.name, other.name);
    const value = (entry) => entry.body.dataset[key];
    if (numeric) return (one, other) => Number(value(one)) - Number(value(other));
    return (one, other) => collator.compare(value(one), value(other));
  };
  const sort = (button) => {
    const header = button.closest("th");
    const next = header.ariaSort === "ascending" ? "descending" : "ascending";
    const { sort: key } = button.dataset;
    const order = compare(key, "numeric" in button.dataset);
    const isUnknown = (entry) => key !== "name" && entry.body.dataset[key] === "";
    const sign = next === "ascending" ? 1 : -1;
    // What is unknown is neither least nor most: it stands last either way.
    const sorted = [...all()].sort((one, other) =>
      isUnknown(one) - isUnknown(other)
      || (isUnknown(one) ? 0 : sign * order(one, other))
      || one.number - other.number);
    for (const other of table.tHead.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", next);
    const block = document.createDocumentFragment();
    for (const { body } of sorted) block.append(body);
    table.append(block);
  };
  for (const button of table.tHead.querySelectorAll("button")) {
    button.disabled = false;
    button.addEventListener("click", () => sort(button));
  }
  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("change", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));
  const setOpen = (open) => {
    for (const body of cases) if (!open || !body.hidden) body.querySelector("details").open = open;
  };
  find("open-all").addEventListener("click", () => setOpen(true));
  find("close-all").addEventListener("click", () => setOpen(false));
  // A browser may fill in the fields of an earlier visit.
  filter();
  openTarget();

  // Older browsers print closed details closed.
  if (!CSS.supports("selector(::details-content)")) {
    let opened = [];
    addEventListener("beforeprint", () => {
      opened = [...document.querySelectorAll("details:not([open])")].filter((one) => !one.closest("[hidden]"));
      for (const one of opened) one.open = true;
    });
    addEventListener("afterprint", () => { for (const one of opened) one.open = false; });
  }
})();
