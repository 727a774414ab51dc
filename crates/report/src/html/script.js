"use strict";
(() => {
  const root = document.documentElement;
  const all = (of, what) => Array.from(of.querySelectorAll(what));
  const make = (name, text, attributes) => {
    const element = document.createElement(name);
    element.textContent = text;
    for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
    return element;
  };
  // Pages of files may have no storage.
  const kept = (value) => {
    try {
      return value ? localStorage.setItem("iotomy-theme", value) : localStorage.getItem("iotomy-theme");
    } catch {
      return null;
    }
  };

  const theme = () => {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const button = make("button", "", { id: "theme", type: "button" });
    const show = (name) => {
      root.dataset.theme = name;
      button.textContent = name === "dark" ? "Light" : "Dark";
      button.setAttribute("aria-label", `switch to ${name === "dark" ? "light" : "dark"} colours`);
    };
    show(kept() || (dark.matches ? "dark" : "light"));
    button.addEventListener("click", () => {
      show(root.dataset.theme === "dark" ? "light" : "dark");
      kept(root.dataset.theme);
    });
    document.querySelector(".top").append(button);
  };

  const value = (cell) => {
    const raw = cell.dataset.v;
    return raw === undefined ? cell.textContent : raw === "" ? -Infinity : Number(raw);
  };

  const sortable = (table) => {
    const body = table.tBodies[0];
    const heads = all(table.tHead, "th");
    heads.forEach((head, column) => {
      const button = make("button", "", { type: "button", title: "sort by this column" });
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const words = head.classList.contains("w");
        const now = head.getAttribute("aria-sort");
        const rises = now ? now === "descending" : words;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", rises ? "ascending" : "descending");
        const rows = Array.from(body.rows, (row) => [value(row.cells[column]), row]);
        const order = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a < b ? -1 : a > b ? 1 : 0);
        rows.sort(([a], [b]) => (rises ? order(a, b) : order(b, a)));
        body.append(...rows.map(([, row]) => row));
      });
    });
  };

  const filterable = (part, table) => {
    const rows = Array.from(table.tBodies[0].rows, (row) => [row.textContent.toLowerCase(), row]);
    if (rows.length < 9) return;
    const label = make("label", "filter ", { class: "filter" });
    const input = make("input", "", { type: "search", autocomplete: "off", spellcheck: "false" });
    const count = make("output", "");
    label.append(input, " ", count);
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase().split(/\s+/);
      let shown = 0;
      for (const [text, row] of rows) {
        row.hidden = !wanted.every((word) => text.includes(word));
        shown += row.hidden ? 0 : 1;
      }
      count.textContent = input.value ? `${shown} of ${rows.length}` : "";
    });
    part.querySelector(".head").append(label);
  };

  const tip = make("div", "", { id: "tip", role: "status", hidden: "" });
  const tell = (point, x, y) => {
    all(document, ".point.now").forEach((other) => other.classList.remove("now"));
    tip.hidden = !point;
    if (!point) return;
    point.classList.add("now");
    tip.textContent = point.dataset.tip;
    const left = Math.min(x + 14, innerWidth - tip.offsetWidth - 8);
    const top = y + 18 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 10 : y + 18;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, top)}px`;
  };

  const tellingNumbers = (chart) => {
    const points = all(chart, ".point");
    for (const point of points) {
      const title = point.querySelector("title");
      point.dataset.tip = title.textContent;
      title.remove();
    }
    if (!points.length) return;
    const frame = chart.parentElement;
    chart.addEventListener("pointermove", (event) => {
      const point = event.target.closest(".point");
      tell(point, event.clientX, event.clientY);
    });
    chart.addEventListener("pointerleave", () => tell(null));
    frame.tabIndex = 0;
    frame.setAttribute("aria-label", "picture; the arrow keys go from figure to figure");
    frame.setAttribute("role", "group");
    let at = -1;
    frame.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") tell(null);
      if (!step) return;
      event.preventDefault();
      const seen = points.filter((point) => !point.closest("[hidden]"));
      if (!seen.length) return;
      at = (at + step + seen.length) % seen.length;
      const box = seen[at].getBoundingClientRect();
      tell(seen[at], box.left + box.width / 2, box.top + box.height / 2);
    });
    frame.addEventListener("blur", () => tell(null));
  };

  const toggling = (figure) => {
    for (const entry of all(figure, ".legend [data-series]")) {
      const button = make("button", "", { type: "button", "aria-pressed": "true" });
      button.append(...entry.childNodes);
      entry.append(button);
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(on));
        for (const group of all(figure, `.chart g[data-series="${entry.dataset.series}"]`)) {
          group.toggleAttribute("hidden", !on);
        }
      });
    }
  };

  const download = (link) => {
    if (!self.DecompressionStream) return;
    link.addEventListener("click", async (event) => {
      event.preventDefault();
      const packed = Uint8Array.from(atob(link.href.slice(link.href.indexOf(",") + 1)), (c) => c.charCodeAt(0));
      const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
      const blob = new Blob([await new Response(stream).arrayBuffer()], { type: "application/json" });
      root.dataset.downloaded = String(blob.size);
      const save = make("a", "", { href: URL.createObjectURL(blob), download: link.download.replace(/\.gz$/, "") });
      save.click();
      setTimeout(() => URL.revokeObjectURL(save.href), 60000);
    });
  };

  theme();
  document.body.append(tip);
  for (const part of all(document, ".table")) {
    const table = part.querySelector("table");
    sortable(table);
    filterable(part, table);
  }
  all(document, ".chart:not(.key)").forEach(tellingNumbers);
  all(document, "figure").forEach(toggling);
  all(document, "a.get").forEach(download);
  root.dataset.ready = String(Math.round(performance.now()));
})();
