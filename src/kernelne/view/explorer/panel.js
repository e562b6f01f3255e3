// The panel: search, legend, details and export. Ids and names are only inserted as text, never as markup.

const MOST_SUGGESTIONS = 10;

function element(tag, text = "", cls = "") {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  if (cls) made.className = cls;
  return made;
}

class Panel {
  constructor(app) {
    this.app = app;
    byId("title").textContent = app.data.title;
    byId("facts").textContent = app.data.facts.map((fact) => fact.replaceAll(" ", "\u00a0")).join(" · ");
    app.onSelect = () => this.showSelection();
    app.onGroups = () => this.showLegend();
    this.suggestions = [];
    this.active = -1;
    this.setUpSearch();
    this.setUpColours();
    this.setUpSelection();
    this.setUpTheme();
    this.setUpHelp();
    byId("fold").addEventListener("click", () => {
      const folded = byId("panel").classList.toggle("folded");
      byId("fold").setAttribute("aria-expanded", String(!folded));
    });
  }

  announce(text) {
    byId("live").textContent = text;
  }

  symbolOf(i) {
    const { groups, groupOf, theme } = this.app;
    const g = groupOf[i] >= 0 ? groupOf[i] : groups.all(i).next().value;
    return groups.symbol(groups.list[g], theme);
  }

  // --- search

  setUpSearch() {
    const input = byId("search");
    input.addEventListener("input", () => this.suggest(input.value));
    input.addEventListener("focus", () => this.suggest(input.value));
    input.addEventListener("blur", () => this.suggest(""));
    input.addEventListener("keydown", (event) => {
      const steps = { ArrowDown: 1, ArrowUp: -1 };
      if (event.key in steps && this.suggestions.length) {
        this.activate((this.active + steps[event.key] + this.suggestions.length) % this.suggestions.length);
      } else if (event.key === "Enter" && this.suggestions.length) {
        this.pick(Math.max(this.active, 0), event.shiftKey);
      } else if (event.key === "Escape" && input.value) {
        input.value = "";
        this.suggest("");
      } else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }

  suggest(text) {
    const list = byId("suggestions");
    this.suggestions = this.app.data.find(text, MOST_SUGGESTIONS);
    this.active = -1;
    list.replaceChildren(
      ...this.suggestions.map((i, rank) => {
        const item = element("li");
        item.id = `suggestion-${rank}`;
        item.setAttribute("role", "option");
        item.setAttribute("aria-selected", "false");
        item.append(element("span", this.app.data.id(i), "cut"));
        const [colouring] = this.app.data.colourings;
        if (colouring.key !== "all") item.append(element("span", colouring.text(i), "quiet cut"));
        item.addEventListener("pointerdown", (event) => {
          event.preventDefault();
          this.pick(rank, event.shiftKey);
        });
        return item;
      }),
    );
    const asked = text.trim() !== "";
    if (asked && !this.suggestions.length) list.append(element("li", "No node id contains this text", "none"));
    list.hidden = !asked;
    byId("search").setAttribute("aria-expanded", String(asked && this.suggestions.length > 0));
    byId("search").removeAttribute("aria-activedescendant");
    if (asked) this.announce(this.suggestions.length ? `${this.suggestions.length} suggestions` : "No node found");
  }

  activate(rank) {
    this.active = rank;
    Array.from(byId("suggestions").children, (item, at) => item.setAttribute("aria-selected", String(at === rank)));
    byId("search").setAttribute("aria-activedescendant", `suggestion-${rank}`);
    byId(`suggestion-${rank}`).scrollIntoView({ block: "nearest" });
  }

  pick(rank, add) {
    const chosen = this.suggestions[rank];
    byId("search").value = this.app.data.id(chosen);
    this.suggest("");
    this.app.visit(chosen, add);
  }

  // --- colours and legend

  setUpColours() {
    const { app } = this;
    byId("colourings").replaceChildren(
      ...app.data.colourings.map((colouring, at) => {
        const label = element("label");
        const input = Object.assign(document.createElement("input"), { type: "radio", name: "colouring", checked: at === 0 });
        input.addEventListener("change", () => {
          app.setColouring(colouring);
          this.showLegend();
          this.showDetail();
          this.announce(`Coloured by ${colouring.name}`);
        });
        label.append(input, element("span", colouring.name));
        return label;
      }),
    );
    byId("colourings").hidden = app.data.colourings.length < 2;
    byId("show-all").addEventListener("click", () => this.filter(() => true));
    byId("show-none").addEventListener("click", () => this.filter(() => false));
    this.showLegend();
  }

  showLegend() {
    const { groups, theme } = this.app;
    byId("legend").replaceChildren(
      ...groups.list.map((group) => {
        const button = element("button");
        button.type = "button";
        button.setAttribute("aria-pressed", String(group.shown));
        button.title = group.name;
        button.append(groups.symbol(group, theme), element("span", group.name, "cut"), element("span", count(group.count), "quiet"));
        button.addEventListener("click", (event) => {
          if (event.shiftKey) this.filter((other) => other === group);
          else this.filter((other) => (other === group ? !group.shown : other.shown));
        });
        const item = element("li");
        item.append(button);
        return item;
      }),
    );
  }

  filter(isShown) {
    const { groups } = this.app;
    for (const group of groups.list) group.shown = isShown(group);
    Array.from(byId("legend").querySelectorAll("button"), (button, at) =>
      button.setAttribute("aria-pressed", String(groups.list[at].shown)),
    );
    this.app.regroup();
    const shown = this.app.groupOf.reduce((sum, g) => sum + (g >= 0), 0);
    this.announce(`${nodes(shown)} of ${count(this.app.data.n)} shown`);
  }

  // --- selection and details

  setUpSelection() {
    const { app } = this;
    byId("clear").addEventListener("click", () => app.select([]));
    byId("detail-close").addEventListener("click", () => {
      app.select([]);
      app.canvas.focus({ preventScroll: true });
    });
    byId("zoom-here").addEventListener("click", () => {
      const { data, focus } = app;
      app.frame([focus, ...data.nearest(focus), ...data.links(focus)]);
    });
    byId("select-view").addEventListener("click", () => {
      const { width, height } = app.view;
      app.select(app.nodesIn([[0, 0], [width, 0], [width, height], [0, height]]));
    });
    byId("export").addEventListener("click", () => {
      const link = element("a");
      link.href = URL.createObjectURL(new Blob([app.csv()], { type: "text/csv" }));
      link.download = "selection.csv";
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
      this.announce(`${nodes(app.selection.size)} exported`);
    });
  }

  showSelection() {
    const { size } = this.app.selection;
    byId("selection-count").textContent = size ? nodes(size) : "none";
    byId("clear").disabled = byId("export").disabled = size === 0;
    this.showDetail();
    const { focus, data } = this.app;
    const facts = focus < 0 ? "" : `. Node ${data.id(focus)}, ${this.factsOf(focus).map((pair) => pair.join(" ")).join(", ")}`;
    this.announce(`${size ? nodes(size) : "None"} selected${facts}`);
  }

  factsOf(i) {
    return this.app.data.colourings.filter((one) => one.key !== "all").map((one) => [one.name, one.text(i)]);
  }

  showDetail() {
    const { focus, data } = this.app;
    byId("detail").hidden = focus < 0;
    if (focus < 0) return;
    byId("detail-title").textContent = data.id(focus);
    byId("detail-facts").replaceChildren(
      ...this.factsOf(focus).flatMap(([name, value]) => [element("dt", name), element("dd", value)]),
    );
    const near = data.nearest(focus);
    byId("nearest-part").hidden = !near.length;
    byId("nearest").replaceChildren(...near.map((i, rank) => this.entry(i, data.similarity(focus, rank).toFixed(3))));
    const links = data.links(focus);
    byId("links-part").hidden = !data.hasGraph;
    byId("links").replaceChildren(...links.map((i) => this.entry(i, "")));
    if (!data.hasGraph) return;
    const all = data.degrees[focus];
    byId("links-count").textContent = links.length < all ? `${count(links.length)} of ${count(all)}` : count(all);
  }

  entry(i, note) {
    const button = element("button");
    button.type = "button";
    button.append(this.symbolOf(i), element("span", this.app.data.id(i), "cut"), element("span", note, "quiet"));
    button.addEventListener("click", (event) => {
      this.app.visit(i, event.shiftKey);
      byId("detail").scrollIntoView({ block: "nearest" });
      // The list that had the focus has been replaced.
      (byId("detail").querySelector(".nodes button") ?? byId("detail-close")).focus({ preventScroll: true });
    });
    const item = element("li");
    item.append(button);
    return item;
  }

  // --- theme and help

  setUpTheme() {
    const wanted = matchMedia("(prefers-color-scheme: dark)");
    wanted.addEventListener("change", () => this.setTheme(wanted.matches ? "dark" : "light"));
    byId("theme").addEventListener("click", () => this.setTheme(this.app.theme === "dark" ? "light" : "dark"));
    this.setTheme(this.app.theme);
  }

  setTheme(theme) {
    this.app.setTheme(theme);
    byId("theme").setAttribute("aria-pressed", String(theme === "dark"));
    this.showLegend();
    this.showDetail();
  }

  setUpHelp() {
    byId("help").addEventListener("click", () => byId("keys-dialog").showModal());
    byId("keys-close").addEventListener("click", () => byId("keys-dialog").close());
  }
}
