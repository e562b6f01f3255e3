// The layer above the points: lines to neighbours, rings, names, and the box or lasso being drawn.

const MOST_RINGS = 60; // more rings would hide the points; fading the others is enough then
const MOST_NAMES = 40;
const MANY_GROUPS = 15; // with more groups the names are smaller

class Overlay {
  constructor(canvas, data, view) {
    Object.assign(this, { canvas, data, view, context: canvas.getContext("2d") });
  }

  place(i) {
    return this.view.toScreen(this.data.places[2 * i], this.data.places[2 * i + 1]);
  }

  draw({ focus, hover, selection, marks, anchors, radius, colours, drawn, cross }) {
    const { context, view } = this;
    this.colours = colours;
    context.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
    context.clearRect(0, 0, view.width, view.height);
    this.boxes = [];
    if (focus >= 0) {
      this.lines(focus, this.data.links(focus).filter(drawn), colours.quiet, 1, []);
      this.lines(focus, this.data.nearest(focus).filter(drawn), colours.accent, 2.4, [6, 5]);
    }
    if (selection.size <= MOST_RINGS) {
      for (const i of selection) if (i !== focus && drawn(i)) this.ring(i, radius + 2.5, colours.text, 1.2);
    }
    if (hover >= 0) this.ring(hover, radius + 3.5, colours.text, 1.5);
    if (focus >= 0) {
      this.ring(focus, radius + 4, colours.accent, 3);
      const near = [focus, ...this.data.nearest(focus), ...this.data.links(focus)].filter(drawn);
      for (const i of near.slice(0, MOST_NAMES)) this.name(this.data.id(i), this.place(i), radius + 8, i === focus ? 14 : 12);
    } else {
      for (const { name, x, y } of anchors) {
        const [left, top] = view.toScreen(x, y);
        this.name(name, [left, top - 14], 0, anchors.length > MANY_GROUPS ? 12 : 15); // above the node: a name may cover a small group
      }
    }
    if (marks.length) this.marked(marks);
    if (cross) this.cross();
  }

  lines(from, to, colour, width, dashes) {
    const { context } = this;
    const [x, y] = this.place(from);
    context.beginPath();
    for (const i of to) {
      context.moveTo(x, y);
      context.lineTo(...this.place(i));
    }
    context.setLineDash(dashes);
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.stroke();
    context.setLineDash([]);
  }

  ring(i, radius, colour, width) {
    const { context } = this;
    context.beginPath();
    context.arc(...this.place(i), radius, 0, 2 * Math.PI);
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.stroke();
  }

  // Draw a name beside a position (centred on it if the distance is 0), unless it would overlap another.
  name(text, [x, y], distance, size) {
    const { context, view, colours } = this;
    const shown = text.length > 22 ? `${text.slice(0, 21).trim()}…` : text;
    context.font = `600 ${size}px system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif`;
    context.textBaseline = "middle";
    const width = context.measureText(shown).width;
    const right = x + distance + width < view.width;
    const left = !distance ? x - width / 2 : right ? x + distance : x - distance - width;
    const box = [left - 4, y - size * 0.75, left + width + 4, y + size * 0.75];
    if (box[0] > view.width || box[2] < 0 || box[1] > view.height || box[3] < 0) return;
    if (this.boxes.some((b) => box[0] < b[2] && box[2] > b[0] && box[1] < b[3] && box[3] > b[1])) return;
    this.boxes.push(box);
    context.lineJoin = "round";
    context.lineWidth = 5;
    context.strokeStyle = colours.ground;
    context.strokeText(shown, left, y);
    context.fillStyle = colours.text;
    context.fillText(shown, left, y);
  }

  marked(marks) {
    const { context, colours } = this;
    context.beginPath();
    marks.forEach(([x, y]) => context.lineTo(x, y));
    context.closePath();
    context.globalAlpha = 0.12;
    context.fillStyle = colours.accent;
    context.fill();
    context.globalAlpha = 1;
    context.lineWidth = 1.5;
    context.strokeStyle = colours.accent;
    context.stroke();
  }

  cross() {
    const { context, view, colours } = this;
    const [x, y] = [Math.round(view.width / 2), Math.round(view.height / 2)];
    for (const [colour, width] of [[colours.ground, 5], [colours.accent, 2]]) {
      context.beginPath();
      for (const [a, b] of [[0, 1], [1, 0], [0, -1], [-1, 0]]) {
        context.moveTo(x + 5 * a, y + 5 * b);
        context.lineTo(x + 14 * a, y + 14 * b);
      }
      context.lineWidth = width;
      context.strokeStyle = colour;
      context.stroke();
    }
  }
}

// Whether (x, y) lies inside a polygon of points [x, y].
function isInside(x, y, polygon) {
  let inside = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
    const [ax, ay] = polygon[i];
    const [bx, by] = polygon[j];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}
