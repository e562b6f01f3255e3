// The map: its state (nodes shown, selection, focus, view), and drawing it when the state changes.

const byId = (id) => document.getElementById(id);
const count = (number) => number.toLocaleString("en");
const nodes = (number) => `${count(number)} ${number === 1 ? "node" : "nodes"}`;

// How many nodes are around each cell of a square grid, nearer ones counting more, given the nodes of each: wide enough
// to see past a few that lie upon each other.
function densities(counts, side) {
  const weights = [1, 2, 3, 4, 3, 2, 1];
  const blur = (from, step) => {
    const to = new Float32Array(from.length);
    for (let c = 0; c < from.length; c++) {
      if (!from[c]) continue;
      const at = step === 1 ? c % side : Math.floor(c / side);
      for (let k = -3; k <= 3; k++) if (at + k >= 0 && at + k < side) to[c + k * step] += weights[k + 3] * from[c];
    }
    return to;
  };
  return blur(blur(counts, 1), side);
}

// Of the cells that have nodes of a class, the one where the class is dense and others are not.
function densestCell(counts, every, side) {
  const own = densities(counts, side);
  let [best, most] = [-1, 0];
  for (let c = 0; c < counts.length; c++) {
    const worth = counts[c] ? own[c] ** 2 / every[c] : 0;
    if (worth > most) [best, most] = [c, worth];
  }
  return best;
}

class App {
  constructor(data) {
    this.data = data;
    this.stage = byId("stage");
    this.canvas = byId("overlay");
    this.view = new View(data.places);
    this.grid = new Grid(data.places);
    this.overlay = new Overlay(this.canvas, data, this.view);
    this.selection = new Set();
    this.styles = new Uint8Array(4 * data.n);
    this.groupOf = new Int32Array(data.n);
    Object.assign(this, { focus: -1, hover: -1, mode: "pan", marks: [], moving: false, queued: false });
    this.points = this.makePoints();
    this.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    this.setColouring(data.colourings[0]);
    new ResizeObserver(() => this.resize()).observe(this.stage);
    this.resize();
  }

  makePoints() {
    const rest = () => {
      this.moving = false;
      this.draw();
    };
    if (location.hash !== "#canvas") {
      try {
        return new GlPoints(byId("points"), this.data.places, rest, () => this.paint());
      } catch {
        // A canvas that was once asked for WebGL may provide no other context.
        byId("points").replaceWith(Object.assign(document.createElement("canvas"), { id: "points" }));
        byId("points").setAttribute("aria-hidden", "true");
      }
    }
    return new CanvasPoints(byId("points"), this.data.places, rest);
  }

  resize() {
    const { width, height } = this.stage.getBoundingClientRect();
    if (!width || !height) return;
    const tools = document.querySelector(".tools").getBoundingClientRect();
    const covers = parseFloat(getComputedStyle(byId("panel")).marginTop); // negative where the panel covers the map
    const wide = tools.height > tools.width;
    const insets = { left: wide ? tools.right : 0, top: wide ? 0 : tools.bottom, bottom: Math.max(-covers, 0) };
    this.view.resize(width, height, Math.min(devicePixelRatio || 1, 2), insets);
    this.points.resize(this.view);
    this.canvas.width = Math.round(width * this.view.ratio);
    this.canvas.height = Math.round(height * this.view.ratio);
    this.moving = false;
    this.draw();
  }

  setTheme(theme) {
    this.theme = theme;
    this.paint();
  }

  setColouring(colouring) {
    this.groups = new Groups(colouring, this.data.n);
    this.regroup();
  }

  isShown(i) {
    return this.groupOf[i] >= 0;
  }

  // Recompute the group of each node after a change of colouring or filter.
  regroup() {
    for (let i = 0; i < this.data.n; i++) this.groupOf[i] = this.groups.of(i);
    this.anchors = this.groups.colouring.ordered || this.groups.list.length < 2 ? [] : this.findAnchors();
    this.paint();
  }

  // Recompute the styles of all nodes after a change of colours or selection.
  paint() {
    document.documentElement.dataset.theme = this.theme;
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    this.colours = Object.fromEntries(["ground", "text", "quiet", "accent"].map((name) => [name, colour(name)]));
    this.ground = toRgb(this.colours.ground);
    const looks = this.groups.list.map((group) => [...this.groups.colour(group, this.theme), 1 + group.shape]);
    const lit = new Set(this.selection);
    if (this.focus >= 0) for (const i of [...this.data.nearest(this.focus), ...this.data.links(this.focus)]) lit.add(i);
    this.anyLit = lit.size > 0;
    looks.push([0, 0, 0, 0]);
    for (let i = 0; i < this.data.n; i++) {
      const look = looks[this.isShown(i) ? this.groupOf[i] : looks.length - 1];
      for (let c = 0; c < 4; c++) this.styles[4 * i + c] = look[c];
    }
    for (const i of lit) if (this.isShown(i)) this.styles[4 * i + 3] += LIT;
    this.points.setStyles(this.styles);
    this.draw();
  }

  // Where to draw the names of groups: at a member where the group is dense among those shown, the largest group first.
  findAnchors() {
    const { places, n } = this.data;
    const side = 48;
    const counts = this.groups.list.map((group) => (group.other ? null : new Uint32Array(side * side)));
    const sizes = new Uint32Array(counts.length);
    const total = new Uint32Array(side * side);
    const at = (value) => Math.min(side - 1, Math.max(0, Math.floor(((value + 1) / 2) * side)));
    const cell = (i) => at(places[2 * i]) * side + at(places[2 * i + 1]);
    for (let i = 0; i < n; i++) {
      const g = this.groupOf[i];
      if (g < 0) continue;
      const c = cell(i);
      total[c]++;
      if (!counts[g]) continue;
      counts[g][c]++;
      sizes[g]++;
    }
    const every = densities(total, side);
    const full = counts.map((own) => own && densestCell(own, every, side));
    const members = new Int32Array(counts.length).fill(-1);
    for (let i = 0; i < n; i++) {
      const g = this.groupOf[i];
      if (g >= 0 && counts[g] && members[g] < 0 && cell(i) === full[g]) members[g] = i;
    }
    return this.groups.list
      .map((group, g) => ({ name: group.name, size: sizes[g], i: members[g] }))
      .filter(({ i }) => i >= 0)
      .sort((a, b) => b.size - a.size)
      .map(({ name, i }) => ({ name, x: places[2 * i], y: places[2 * i + 1] }));
  }

  draw() {
    if (this.queued) return;
    this.queued = true;
    requestAnimationFrame((now) => {
      this.queued = false;
      const radius = this.view.radius(this.data.n);
      const { focus, hover, selection, marks, anchors, colours, ground, anyLit } = this;
      const opacity = this.view.opacity(this.data.n);
      this.points.draw(now, this.view, { radius, ground, anyLit, opacity }, this.moving);
      const cross = this.canvas.matches(":focus-visible");
      const drawn = (i) => this.isShown(i);
      this.overlay.draw({ focus, hover, selection, marks, anchors, radius, colours, drawn, cross });
    });
  }

  move(change) {
    change(this.view);
    this.moving = true;
    this.onMove();
    this.draw();
  }

  // The nearest shown node within `reach` pixels of a screen position, or -1.
  nodeAt(left, top, reach) {
    const [x, y] = this.view.toMap(left, top);
    return this.grid.nearest(x, y, reach / this.view.scale, (i) => this.isShown(i));
  }

  select(chosen, { add = false, focus = -1 } = {}) {
    if (!add) this.selection = new Set();
    for (const i of chosen) this.selection.add(i);
    this.focus = this.selection.has(focus) ? focus : -1;
    this.paint();
    this.onSelect();
  }

  // Select one node by a click: alone, or toggled in the selection if `add`.
  choose(i, add) {
    const leaves = add && this.selection.delete(i);
    this.select(leaves ? [] : [i], { add, focus: leaves ? -1 : i });
  }

  // Select one node; show it if it was hidden, and move it into view.
  visit(i, add = false) {
    if (!this.isShown(i)) {
      for (const g of this.groups.all(i)) this.groups.list[g].shown = true;
      this.regroup();
      this.onGroups();
    }
    this.select([i], { add, focus: i });
    const [x, y] = this.data.places.subarray(2 * i, 2 * i + 2);
    if (!this.view.shows(x, y, 40)) this.glide({ x, y, scale: this.view.scale });
  }

  // Zoom in as far as all given nodes remain visible.
  frame(some) {
    const box = new View(Float32Array.from(some.flatMap((i) => [...this.data.places.subarray(2 * i, 2 * i + 2)]))).bounds;
    const { x, y, scale } = this.view.framed(box);
    this.glide({ x, y, scale: Math.min(scale, this.view.fitted * 40) });
  }

  glide(to) {
    const start = { x: this.view.x, y: this.view.y, scale: this.view.scale };
    const begin = performance.now();
    this.view.isFit = false;
    const length = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 250;
    const step = (now) => {
      const share = length ? Math.min(Math.max((now - begin) / length, 0), 1) : 1;
      const eased = share * (2 - share);
      const scale = start.scale * (to.scale / start.scale) ** eased;
      // Move in step with the zoom, so that the target does not leave the view on the way.
      const way = to.scale === start.scale ? eased : (1 / start.scale - 1 / scale) / (1 / start.scale - 1 / to.scale);
      this.view.x = start.x + (to.x - start.x) * way;
      this.view.y = start.y + (to.y - start.y) * way;
      this.view.scale = scale;
      this.moving = share < 1;
      this.onMove();
      this.draw();
      if (share < 1) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  // Shown nodes inside a polygon of screen positions.
  nodesIn(polygon) {
    const found = [];
    const { places } = this.data;
    for (let i = 0; i < this.data.n; i++) {
      if (this.isShown(i) && isInside(...this.view.toScreen(places[2 * i], places[2 * i + 1]), polygon)) found.push(i);
    }
    return found;
  }

  // The selection as CSV: the id, classes and coordinates of each node.
  csv() {
    const quote = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const known = this.data.colourings.filter((one) => one.key !== "all");
    const several = (one, i) => {
      const [from, to] = one.range(i);
      return Array.from(one.codes.subarray(from, to), (code) => one.classes[code]).join(";");
    };
    const lines = [["id", ...known.map((one) => one.key), "x", "y"]];
    for (const i of [...this.selection].sort((a, b) => a - b)) {
      const facts = known.map((one) => (one.values ? String(one.values[i]) : several(one, i)));
      lines.push([this.data.id(i), ...facts, ...Array.from(this.data.places.subarray(2 * i, 2 * i + 2), String)]);
    }
    return lines.map((cells) => cells.map(quote).join(",") + "\n").join("");
  }
}
