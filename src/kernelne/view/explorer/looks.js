// Colours that colour-blind people can distinguish (after Okabe and Ito), and shapes.

const HUES = {
  light: ["#0072b2", "#cf7e00", "#009e73", "#cc4b00", "#b3568e", "#2b8fce", "#857500", "#4a4f55"],
  dark: ["#5aa9e6", "#f0a830", "#2fc79b", "#ff7f50", "#e59ac8", "#9ad7fa", "#f0e442", "#c9ced3"],
};
// From low to high, even in lightness (after cividis).
const SCALE = {
  light: ["#a58f2b", "#8a8464", "#72726f", "#565f70", "#2f456f", "#00224e"],
  dark: ["#54668f", "#74767a", "#8d8878", "#b5a873", "#dcc95f", "#ffea46"],
};
const OTHER = { light: "#8a8f95", dark: "#6d757c" };
// Five shapes and eight hues advance together: forty looks before one repeats.
const SHAPES = {
  circle: "M8 1.6a6.4 6.4 0 1 0 0 12.8a6.4 6.4 0 1 0 0-12.8z",
  square: "M2.4 2.4h11.2v11.2h-11.2z",
  triangle: "M8 1.2 15 13.6H1z",
  diamond: "M8 .6 15.4 8 8 15.4.6 8z",
  cross: "M5.7 1h4.6v4.7H15v4.6h-4.7V15H5.7v-4.7H1V5.7h4.7z",
};
const SHAPE_NAMES = Object.keys(SHAPES);
const MOST_GROUPS = 40;

function toRgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

function between(stops, share) {
  const at = share * (stops.length - 1);
  const [low, high] = [Math.floor(at), Math.ceil(at)].map((stop) => toRgb(stops[stop]));
  return low.map((value, c) => Math.round(value + (high[c] - value) * (at - Math.floor(at))));
}

// The entries of the legend: the classes of a colouring; if there are too many, the largest and one for the others.
class Groups {
  constructor(colouring, n) {
    this.colouring = colouring;
    const sizes = new Uint32Array(colouring.classes.length);
    for (const code of colouring.codes) if (code >= 0) sizes[code]++;
    let kept = Array.from(sizes.keys()).filter((code) => sizes[code] > 0);
    const folds = kept.length > MOST_GROUPS;
    if (folds) kept = kept.sort((a, b) => sizes[b] - sizes[a] || a - b).slice(0, MOST_GROUPS - 1);
    this.list = kept.map((code, at) => ({
      name: colouring.classes[code],
      shape: colouring.ordered ? 0 : at % SHAPE_NAMES.length,
      hue: at % HUES.light.length,
      share: kept.length > 1 ? at / (kept.length - 1) : 0,
    }));
    this.groupOf = new Int32Array(sizes.length).fill(folds ? kept.length : -1);
    kept.forEach((code, at) => (this.groupOf[code] = at));
    const nFolded = sizes.reduce((sum, size) => sum + (size > 0), 0) - kept.length;
    if (folds) this.list.push({ name: `${nFolded.toLocaleString("en")} others`, shape: 0, other: true });
    this.none = this.list.length;
    this.list.push({ name: `no ${colouring.name.toLowerCase()}`, shape: 0, other: true });
    for (const group of this.list) Object.assign(group, { count: 0, shown: true });
    this.count(n);
    if (!this.list[this.none].count) this.list.pop();
  }

  count(n) {
    if (!this.colouring.starts) {
      for (const code of this.colouring.codes) this.list[code < 0 ? this.none : this.groupOf[code]].count++;
      return;
    }
    const last = new Int32Array(this.list.length).fill(-1);
    for (let i = 0; i < n; i++) {
      for (const g of this.all(i)) {
        if (last[g] !== i) this.list[g].count++;
        last[g] = i;
      }
    }
  }

  *all(i) {
    const [from, to] = this.colouring.range(i);
    if (from === to) yield this.none;
    for (let k = from; k < to; k++) yield this.groupOf[this.colouring.codes[k]];
  }

  // The group that a node is drawn in: the first of its groups that is shown, or -1.
  of(i) {
    const { codes, starts } = this.colouring;
    const from = starts ? starts[i] : i;
    const to = starts ? starts[i + 1] : codes[i] < 0 ? i : i + 1;
    if (from === to) return this.list[this.none].shown ? this.none : -1;
    for (let k = from; k < to; k++) if (this.list[this.groupOf[codes[k]]].shown) return this.groupOf[codes[k]];
    return -1;
  }

  colour(group, theme) {
    if (group.other) return toRgb(OTHER[theme]);
    return this.colouring.ordered ? between(SCALE[theme], group.share) : toRgb(HUES[theme][group.hue]);
  }

  symbol(group, theme) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 16 16");
    svg.setAttribute("class", "symbol");
    svg.setAttribute("aria-hidden", "true");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", SHAPES[SHAPE_NAMES[group.shape]]);
    path.setAttribute("fill", `rgb(${this.colour(group, theme)})`);
    svg.append(path);
    return svg;
  }
}
