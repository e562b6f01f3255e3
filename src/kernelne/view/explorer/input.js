// Pointer, touch and keys on the map.

const CLICK_WITHIN = 5; // pixels a pointer may move in a click
const STEP = 60;

class Input {
  constructor(app) {
    this.app = app;
    this.pointers = new Map();
    this.start = null;
    const { canvas } = app;
    app.onMove = () => this.hover(-1); // another node may be under the pointer now
    const on = (name, handle) => canvas.addEventListener(name, (event) => handle.call(this, event));
    on("pointerdown", this.down);
    on("pointermove", this.moved);
    on("pointerup", this.up);
    on("pointercancel", this.cancel);
    on("pointerleave", () => this.hover(-1));
    on("wheel", this.wheel);
    on("dblclick", (event) => this.at(event) < 0 && app.move((view) => view.zoomBy(2, event.offsetX, event.offsetY)));
    on("focus", () => app.draw());
    on("blur", () => app.draw());
    document.addEventListener("keydown", (event) => this.key(event));
    for (const button of document.querySelectorAll("[data-mode]")) {
      button.addEventListener("click", () => this.setMode(button.dataset.mode));
    }
    byId("zoom-in").addEventListener("click", () => app.move((view) => view.zoomBy(1.5)));
    byId("zoom-out").addEventListener("click", () => app.move((view) => view.zoomBy(1 / 1.5)));
    byId("fit").addEventListener("click", () => app.move((view) => view.fit()));
  }

  setMode(mode) {
    this.app.mode = mode;
    this.app.canvas.classList.toggle("marking", mode !== "pan");
    for (const button of document.querySelectorAll("[data-mode]")) {
      button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
    }
  }

  at(event) {
    const reach = event.pointerType === "touch" ? 22 : 9;
    return this.app.nodeAt(event.offsetX, event.offsetY, reach);
  }

  down(event) {
    if (event.button > 0) return;
    this.hover(-1);
    this.app.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
    if (this.pointers.size > 1) {
      this.start = null; // two fingers: neither a click nor a mark
      this.app.marks = [];
      return;
    }
    const mode = this.app.mode === "pan" && event.shiftKey ? "box" : this.app.mode;
    this.start = { x: event.offsetX, y: event.offsetY, mode, dragged: false };
  }

  moved(event) {
    const { app, start } = this;
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      if (event.pointerType !== "touch") this.hover(this.at(event), event);
      return;
    }
    const now = [event.offsetX, event.offsetY];
    if (this.pointers.size > 1) this.pinch(event.pointerId, now);
    this.pointers.set(event.pointerId, now);
    if (!start || this.pointers.size > 1) return;
    start.dragged ||= Math.hypot(now[0] - start.x, now[1] - start.y) > CLICK_WITHIN;
    if (!start.dragged) {
      this.pointers.set(event.pointerId, before); // the first pixels are added when the drag starts
      return;
    }
    this.hover(-1);
    if (start.mode === "pan") {
      app.canvas.classList.add("dragging");
      app.move((view) => view.pan(now[0] - before[0], now[1] - before[1]));
      return;
    }
    if (start.mode === "box") app.marks = [[start.x, start.y], [now[0], start.y], now, [start.x, now[1]]];
    else app.marks = app.marks.length ? [...app.marks, now] : [[start.x, start.y], now];
    app.draw();
  }

  pinch(id, now) {
    const before = this.pointers.get(id);
    const other = [...this.pointers].find(([key]) => key !== id)[1];
    const length = (p) => Math.max(Math.hypot(p[0] - other[0], p[1] - other[1]), 1);
    this.app.move((view) => {
      view.pan((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
      view.zoomBy(length(now) / length(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
    });
  }

  up(event) {
    const { app, start } = this;
    if (!this.pointers.delete(event.pointerId) || !start) return;
    this.start = null;
    app.canvas.classList.remove("dragging");
    const add = event.shiftKey || event.ctrlKey || event.metaKey;
    const { marks } = app;
    app.marks = [];
    if (!start.dragged) {
      const i = this.at(event);
      if (i >= 0) app.choose(i, add);
      else if (!add && app.selection.size) app.select([]);
    } else if (marks.length) {
      app.select(app.nodesIn(marks), { add, focus: add ? app.focus : -1 });
    }
    app.moving = false;
    app.draw();
  }

  cancel(event) {
    this.pointers.delete(event.pointerId);
    this.start = null;
    this.app.marks = [];
    this.app.canvas.classList.remove("dragging");
    this.app.draw();
  }

  wheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 20 : 1;
    const speed = event.ctrlKey ? 0.01 : 0.0016; // a pinch on a touchpad arrives as small steps with Ctrl
    const factor = Math.exp(-Math.max(-300, Math.min(300, event.deltaY * lines)) * speed);
    this.app.move((view) => view.zoomBy(factor, event.offsetX, event.offsetY));
  }

  hover(i, event) {
    const { app } = this;
    const tip = byId("tooltip");
    if (i !== app.hover) {
      app.hover = i;
      app.canvas.classList.toggle("over", i >= 0 && app.mode === "pan");
      tip.hidden = i < 0;
      if (i >= 0) {
        const facts = app.data.colourings.filter((one) => one.key !== "all");
        tip.replaceChildren(
          element("strong", app.data.id(i)),
          ...facts.map((one) => element("div", `${one.name} ${one.text(i)}`, "quiet")),
        );
      }
      app.draw();
    }
    if (i < 0) return;
    const [x, y] = app.overlay.place(i);
    const { offsetWidth: width, offsetHeight: height } = tip;
    const left = x + 16 + width > app.view.width ? x - width - 16 : x + 16;
    const top = Math.min(Math.max(y - height / 2, 4), app.view.height - height - 4);
    tip.style.transform = `translate(${Math.max(left, 4)}px, ${top}px)`;
  }

  key(event) {
    const { app } = this;
    if (event.key === "Escape" && !document.querySelector("dialog[open]")) {
      if (app.selection.size) app.select([]);
      return;
    }
    // Single keys only work on the map, so that they do not interfere with other focused elements.
    if ((event.target !== app.canvas && event.target !== document.body) || event.ctrlKey || event.metaKey || event.altKey) return;
    const far = event.shiftKey ? 4 * STEP : STEP;
    const pan = (dx, dy) => () => app.move((view) => view.pan(dx, dy));
    const zoom = (factor) => () => app.move((view) => view.zoomBy(factor));
    const keys = {
      ArrowLeft: pan(far, 0),
      ArrowRight: pan(-far, 0),
      ArrowUp: pan(0, far),
      ArrowDown: pan(0, -far),
      "+": zoom(1.3),
      "=": zoom(1.3),
      "-": zoom(1 / 1.3),
      _: zoom(1 / 1.3),
      0: () => app.move((view) => view.fit()),
      Enter: () => this.enter(event.shiftKey),
      m: () => this.setMode("pan"),
      b: () => this.setMode("box"),
      l: () => this.setMode("lasso"),
      d: () => byId("theme").click(),
      "/": () => byId("search").focus(),
      "?": () => byId("help").click(),
    };
    const act = keys[event.key] ?? keys[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    act();
  }

  // Select the node nearest to the cross.
  enter(add) {
    const { width, height } = this.app.view;
    const i = this.app.nodeAt(width / 2, height / 2, Math.min(width, height) / 2);
    if (i >= 0) this.app.choose(i, add);
  }
}

const app = new App(new Data(JSON.parse(byId("data").textContent)));
app.panel = new Panel(app);
app.input = new Input(app);
globalThis.explorer = app; // for the console
