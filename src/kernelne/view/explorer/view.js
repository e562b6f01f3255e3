// The view: its centre in map coordinates, and its scale in pixels per unit.

const MOST_ZOOM = 4000;

class View {
  constructor(places) {
    let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let i = 0; i < places.length; i += 2) {
      left = Math.min(left, places[i]);
      right = Math.max(right, places[i]);
      low = Math.min(low, places[i + 1]);
      high = Math.max(high, places[i + 1]);
    }
    this.bounds = { x: (left + right) / 2, y: (low + high) / 2, width: right - left || 1, height: high - low || 1 };
    Object.assign(this, { x: 0, y: 0, scale: 1, width: 1, height: 1, fitted: 1, ratio: 1, isFit: true });
  }

  // insets: pixels at the left, top and bottom that are covered.
  resize(width, height, ratio, insets) {
    Object.assign(this, { width, height, ratio, insets });
    this.fitted = this.framed(this.bounds).scale;
    if (this.isFit) this.fit();
  }

  // The centre and scale at which a box fills the area that is not covered.
  framed(box) {
    const { left, top, bottom } = this.insets;
    const margin = Math.min(40, this.width / 10, this.height / 10);
    const across = Math.max(this.width - left - 2 * margin, 1) / box.width;
    const down = Math.max(this.height - top - bottom - 2 * margin, 1) / box.height;
    const scale = Math.min(across, down);
    return { x: box.x - left / 2 / scale, y: box.y + (top - bottom) / 2 / scale, scale };
  }

  fit() {
    Object.assign(this, this.framed(this.bounds), { isFit: true });
  }

  get zoom() {
    return this.scale / this.fitted;
  }

  toScreen(x, y) {
    return [(x - this.x) * this.scale + this.width / 2, this.height / 2 - (y - this.y) * this.scale];
  }

  toMap(left, top) {
    return [(left - this.width / 2) / this.scale + this.x, (this.height / 2 - top) / this.scale + this.y];
  }

  pan(dx, dy) {
    this.isFit = false;
    const { bounds } = this;
    const keep = (value, middle, size) => Math.min(Math.max(value, middle - size / 2), middle + size / 2);
    this.x = keep(this.x - dx / this.scale, bounds.x, bounds.width);
    this.y = keep(this.y + dy / this.scale, bounds.y, bounds.height);
  }

  // Zoom so that the point under (left, top) stays there.
  zoomBy(factor, left = this.width / 2, top = this.height / 2) {
    const [x, y] = this.toMap(left, top);
    this.scale = Math.min(Math.max(this.scale * factor, this.fitted / 2), this.fitted * MOST_ZOOM);
    const [nowLeft, nowTop] = this.toScreen(x, y);
    this.pan(left - nowLeft, top - nowTop);
  }

  shows(x, y, margin = 0) {
    const [left, top] = this.toScreen(x, y);
    return left >= margin && top >= margin && left <= this.width - margin && top <= this.height - margin;
  }

  // The radius of a point in pixels: smaller for many nodes, larger with the zoom.
  radius(n) {
    const roomy = Math.sqrt((this.width * this.height * 0.08) / Math.max(n, 1) / Math.PI);
    return Math.min(Math.max(Math.min(roomy, 6), 1.3) * Math.max(this.zoom, 1) ** 0.45, 10);
  }

  // The opacity of a point: where many lie over each other they are transparent, so that density is shade.
  opacity(n) {
    const area = this.bounds.width * this.bounds.height * this.scale ** 2;
    const layers = (n * Math.PI * this.radius(n) ** 2) / area;
    return Math.min(Math.max(1 / layers, 0.12), 0.94);
  }
}

// Nodes by grid cell, to find the one under the pointer.
class Grid {
  constructor(places) {
    const n = places.length / 2;
    this.places = places;
    this.side = Math.max(1, Math.min(512, Math.ceil(Math.sqrt(n / 3))));
    const cells = new Uint32Array(n);
    this.starts = new Uint32Array(this.side * this.side + 1);
    for (let i = 0; i < n; i++) {
      cells[i] = this.cell(places[2 * i]) * this.side + this.cell(places[2 * i + 1]);
      this.starts[cells[i] + 1]++;
    }
    for (let c = 0; c < this.side * this.side; c++) this.starts[c + 1] += this.starts[c];
    const next = this.starts.slice();
    this.nodes = new Uint32Array(n);
    for (let i = 0; i < n; i++) this.nodes[next[cells[i]]++] = i;
  }

  // Coordinates are between -1 and 1.
  cell(coordinate) {
    return Math.min(this.side - 1, Math.max(0, Math.floor(((coordinate + 1) / 2) * this.side)));
  }

  // The node nearest to (x, y) within `reach` for which `good` holds, or -1.
  nearest(x, y, reach, good) {
    let best = -1;
    let least = reach * reach;
    for (let a = this.cell(x - reach); a <= this.cell(x + reach); a++) {
      for (let b = this.cell(y - reach); b <= this.cell(y + reach); b++) {
        for (let k = this.starts[a * this.side + b]; k < this.starts[a * this.side + b + 1]; k++) {
          const i = this.nodes[k];
          const distance = (this.places[2 * i] - x) ** 2 + (this.places[2 * i + 1] - y) ** 2;
          if (distance <= least && good(i)) {
            best = i;
            least = distance;
          }
        }
      }
    }
    return best;
  }
}
