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
    const place = chart.parentElement;
    chart.addEventListener("pointermove", (event) => {
      const point = event.target.closest(".point");
      tell(point, event.clientX, event.clientY);
    });
    chart.addEventListener("pointerleave", () => tell(null));
    place.tabIndex = 0;
    place.setAttribute("role", "group");
    place.addEventListener("blur", () => tell(null));
    (chart.matches(".frames") ? zooming : walking)(place, points);
  };

  const tellThere = (point) => {
    const box = (point.querySelector("rect") || point).getBoundingClientRect();
    const above = document.querySelector(".top").offsetHeight;
    if (box.top < above || box.bottom > innerHeight) scrollBy(0, box.top - innerHeight / 2);
    const now = (point.querySelector("rect") || point).getBoundingClientRect();
    tell(point, now.left + now.width / 2, now.top + now.height / 2);
  };

  const walking = (place, points) => {
    place.setAttribute("aria-label", "picture; the arrow keys go from figure to figure");
    let at = -1;
    place.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") tell(null);
      if (!step) return;
      event.preventDefault();
      const seen = points.filter((point) => !point.closest("[hidden]"));
      if (!seen.length) return;
      at = (at + step + seen.length) % seen.length;
      tellThere(seen[at]);
    });
  };

  // Frames: their width is time, and one that is chosen gets all of it. They come in the order of a walk
  // through their tree, so that those of one are behind it, as far as they stand further from the whole.
  const zooming = (place, points) => {
    const LETTER = 6.4, FEWEST = 5, THIN = 0.3, APART = 5;
    const HINT = "a click on a box, or Enter, zooms in";
    const wide = place.querySelector("svg").viewBox.baseVal.width;
    const line = [];
    const frames = points.map((group, at) => {
      const box = group.querySelector("rect");
      const [x, y, width, height] = ["x", "y", "width", "height"].map((key) => Number(box.getAttribute(key)));
      return { group, box, at, x, y, width, height, tip: group.dataset.tip, end: points.length, down: [] };
    });
    for (const frame of frames) {
      frame.name = frame.tip.slice(0, frame.tip.lastIndexOf(": "));
      frame.level = Math.round(Math.abs(frame.y - frames[0].y) / (frame.height + 1));
      line.splice(frame.level).forEach((other) => { other.end = frame.at; });
      frame.up = line[frame.level - 1];
      if (frame.up) frame.up.down.push(frame);
      line.push(frame);
    }
    const below = frames.length > 1 && frames[1].y > frames[0].y;
    let [whole, at] = [frames[0], frames[0]];

    const tools = make("div", "", { class: "tools" });
    const label = make("label", "search ", { class: "filter" });
    const input = make("input", "", { type: "search", autocomplete: "off", spellcheck: "false" });
    const found = make("output", "");
    const back = make("button", "Show all", { type: "button", hidden: "" });
    const where = make("output", HINT);
    label.append(input);
    tools.append(label, found, back, where);
    place.before(tools);

    const isInside = (frame) => frame.at >= whole.at && frame.at < whole.end;
    const share = (part) => `${((100 * part) / whole.width).toFixed(1)} %`;
    const write = (frame, x, width) => {
      const letters = Math.floor((width - 9) / LETTER);
      const { name, group } = frame;
      let text = group.querySelector("text");
      if (!text && letters < FEWEST) return;
      if (!text) {
        text = document.createElementNS(frame.box.namespaceURI, "text");
        text.setAttribute("y", frame.y + 12.5);
        text.setAttribute("class", "small");
        group.append(text);
      }
      text.setAttribute("x", x + 3);
      text.textContent = letters < FEWEST ? "" : name.length <= letters ? name : `${name.slice(0, letters - 1)}…`;
    };
    const search = () => {
      const wanted = input.value.trim().toLowerCase();
      let [count, part, known] = [0, 0, -1];
      for (const frame of frames) {
        const is = wanted !== "" && frame.name.toLowerCase().includes(wanted);
        frame.group.classList.toggle("found", is);
        if (!is || !isInside(frame)) continue;
        count += 1;
        // What stands on one that was found is a part of it.
        if (frame.at >= known) [part, known] = [part + frame.width, frame.end];
      }
      found.textContent = wanted === "" ? "" : `${count} found, ${share(part)} of the width`;
    };
    const zoom = (to) => {
      whole = at = to;
      const above = new Set();
      for (let frame = to.up; frame; frame = frame.up) above.add(frame);
      for (const frame of frames) {
        const is = above.has(frame);
        const x = is ? 0 : ((frame.x - to.x) * wide) / to.width;
        const width = is ? wide : (frame.width * wide) / to.width;
        const gone = !is && (!isInside(frame) || (to !== frames[0] && width < THIN));
        frame.group.toggleAttribute("hidden", gone);
        frame.group.classList.toggle("above", is);
        const more = to.up && isInside(frame) && frame !== to ? `; ${share(frame.width)} of ${to.name}` : "";
        frame.group.dataset.tip = frame.tip + more;
        if (gone) continue;
        frame.box.setAttribute("x", x);
        frame.box.setAttribute("width", width);
        frame.box.classList.toggle("apart", width >= APART);
        write(frame, x, width);
      }
      back.hidden = !to.up;
      where.textContent = to.up ? to.tip : HINT;
      tell(null);
      search();
    };
    const seen = (frame) => !frame.group.hasAttribute("hidden");
    const beside = (step) => {
      for (let i = at.at + step; frames[i]; i += step) if (frames[i].level === at.level && seen(frames[i])) return frames[i];
      return at;
    };
    const widest = (of) => of.filter(seen).reduce((a, b) => (b.width > a.width ? b : a), { width: -1, none: true });
    const next = {
      ArrowLeft: () => beside(-1),
      ArrowRight: () => beside(1),
      [below ? "ArrowUp" : "ArrowDown"]: () => at.up || at,
      [below ? "ArrowDown" : "ArrowUp"]: () => { const to = widest(at.down); return to.none ? at : to; },
    };

    place.setAttribute("aria-label", "picture; the arrow keys go from box to box, Enter zooms in, Escape shows all");
    place.addEventListener("click", (event) => {
      const group = event.target.closest(".point");
      const frame = frames.find((frame) => frame.group === group);
      if (frame) zoom(frame);
    });
    place.addEventListener("keydown", (event) => {
      if (event.key === "Escape") zoom(frames[0]);
      else if (event.key === "Enter") zoom(at);
      else if (next[event.key]) at = next[event.key]();
      else return;
      event.preventDefault();
      if (event.key !== "Escape") tellThere(at.group);
    });
    back.addEventListener("click", () => { zoom(frames[0]); place.focus(); });
    input.addEventListener("input", search);
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
