// All points in one image, somewhat larger than the stage: by WebGL if available, else on a 2D canvas. If drawing
// is slow, the image is moved and scaled while the view moves, and redrawn when it stops.
//
// The style of a node is four bytes: red, green, blue, and 0 (hidden) or 1 + shape (+ LIT). If some nodes are
// lit (highlighted), the others are faded.

const LIT = 8;
const FADE = 0.8;
const BEYOND = 1.5; // width and height of the image relative to the stage: as for #points in style.css
const LATE = 30; // milliseconds between two frames
const LATE_FRAMES = 3;
const VERY_LATE = 300; // milliseconds after which one frame is enough to know
const MANY = 200000; // nodes from which frames at rest are watched, too
const REST = 150;

const VERTEX = `
attribute vec2 place;
attribute vec4 style;
uniform vec2 centre, scale;
uniform mediump float size, pass;
varying vec3 colour;
varying float shape, lit;
void main() {
  lit = step(${LIT}.5, style.a);
  shape = style.a - 1.0 - lit * ${LIT}.0;
  colour = style.rgb / 255.0;
  bool drawn = style.a > 0.5 && (pass < 0.0 || pass == lit);
  gl_Position = drawn ? vec4((place - centre) * scale, 0.0, 1.0) : vec4(2.0, 2.0, 2.0, 1.0);
  gl_PointSize = size;
}`;
const FRAGMENT = `
precision mediump float;
varying vec3 colour;
varying float shape, lit;
uniform vec3 ground;
uniform float size, pass, opacity;
void main() {
  vec2 p = (gl_PointCoord * 2.0 - 1.0) * size / (size - 1.0);
  vec2 a = abs(p);
  float d = length(p) - 0.9;
  if (size > 5.5) {
    if (shape > 3.5) d = min(max(a.x - 0.32, a.y - 0.98), max(a.x - 0.98, a.y - 0.32));
    else if (shape > 2.5) d = (a.x + a.y - 1.1) * 0.7071;
    else if (shape > 1.5) d = max(a.x * 0.866 - p.y * 0.5, p.y) - 0.54;
    else if (shape > 0.5) d = max(a.x, a.y) - 0.78;
  }
  float pixel = 2.0 / size;
  float inside = clamp(0.5 - d / pixel, 0.0, 1.0);
  if (inside <= 0.0) discard;
  float rim = size > 8.0 ? clamp(1.5 + d / pixel, 0.0, 1.0) * 0.65 : 0.0;
  float faded = pass == 0.0 ? ${FADE} : 0.0;
  gl_FragColor = vec4(mix(mix(colour, ground, rim), ground, faded), inside * (pass > 0.5 ? 0.94 : opacity));
}`;

class Points {
  constructor(canvas, places, onRest) {
    Object.assign(this, { canvas, places, onRest, kept: null, late: 0, timer: 0 });
  }

  setStyles(styles) {
    this.styles = styles;
    this.kept = null;
  }

  resize(view) {
    this.canvas.width = Math.round(view.width * view.ratio * BEYOND);
    this.canvas.height = Math.round(view.height * view.ratio * BEYOND);
    this.kept = null;
  }

  // Whether several redrawn frames in a row were late: from then on the image is moved instead.
  get slow() {
    return this.late >= LATE_FRAMES;
  }

  draw(now, view, look, moving) {
    clearTimeout(this.timer);
    if (!moving || !this.slow || !this.covers(view)) {
      this.paint(view, look);
      this.kept = { x: view.x, y: view.y, scale: view.scale };
      if ((moving || this.places.length / 2 >= MANY) && !this.slow) this.watch(now);
    }
    if (moving) this.timer = setTimeout(this.onRest, REST);
    const [dx, dy, zoom] = this.shift(view);
    this.canvas.style.transform = `translate(${dx}px, ${dy}px) scale(${zoom})`;
  }

  // The time of drawing can only be measured by when the next frame comes.
  watch(now) {
    requestAnimationFrame((next) => {
      const late = next - now > VERY_LATE ? LATE_FRAMES : 1;
      if (!this.slow) this.late = next - now > LATE ? this.late + late : 0;
    });
  }

  // The transform of the kept image for this view: pixels to the right and down, and the scale.
  shift(view) {
    const { x, y, scale } = this.kept;
    return [(x - view.x) * view.scale, (view.y - y) * view.scale, view.scale / scale];
  }

  // Whether the kept image still fills the stage and is not yet blurred by zooming in.
  covers(view) {
    if (!this.kept) return false;
    const [dx, dy, zoom] = this.shift(view);
    const spare = (size) => (size * (BEYOND * zoom - 1)) / 2;
    return zoom <= 2 && Math.abs(dx) <= spare(view.width) && Math.abs(dy) <= spare(view.height);
  }
}

class GlPoints extends Points {
  constructor(canvas, places, onRest, onRestored) {
    super(canvas, places, onRest);
    this.name = "WebGL";
    this.gl = canvas.getContext("webgl", { antialias: false, depth: false, alpha: false });
    if (!this.gl) throw new Error("no WebGL");
    this.setUp();
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => {
      this.setUp();
      onRestored();
    });
  }

  setUp() {
    const { gl } = this;
    this.program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(this.program, shader);
    }
    gl.linkProgram(this.program);
    if (!gl.getProgramParameter(this.program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(this.program));
    gl.useProgram(this.program);
    this.uniforms = {};
    for (const name of ["centre", "scale", "size", "pass", "ground", "opacity"]) {
      this.uniforms[name] = gl.getUniformLocation(this.program, name);
    }
    this.attribute("place", 2, gl.FLOAT);
    gl.bufferData(gl.ARRAY_BUFFER, this.places, gl.STATIC_DRAW);
    this.styleBuffer = this.attribute("style", 4, gl.UNSIGNED_BYTE);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
  }

  attribute(name, size, type) {
    const { gl } = this;
    const buffer = gl.createBuffer();
    const place = gl.getAttribLocation(this.program, name);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, size, type, false, 0, 0);
    return buffer;
  }

  setStyles(styles) {
    const { gl } = this;
    super.setStyles(styles);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.styleBuffer);
    gl.bufferData(gl.ARRAY_BUFFER, styles, gl.DYNAMIC_DRAW);
  }

  paint(view, { radius, ground, anyLit, opacity }) {
    const { gl, uniforms } = this;
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clearColor(...ground.map((value) => value / 255), 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.uniform2f(uniforms.centre, view.x, view.y);
    const across = (2 * view.scale) / BEYOND;
    gl.uniform2f(uniforms.scale, across / view.width, across / view.height);
    gl.uniform1f(uniforms.size, 2 * radius * view.ratio + 1);
    gl.uniform1f(uniforms.opacity, opacity);
    gl.uniform3f(uniforms.ground, ...ground.map((value) => value / 255));
    for (const pass of anyLit ? [0, 1] : [-1]) {
      gl.uniform1f(uniforms.pass, pass);
      gl.drawArrays(gl.POINTS, 0, this.places.length / 2);
    }
  }
}

class CanvasPoints extends Points {
  constructor(canvas, places, onRest) {
    super(canvas, places, onRest);
    this.name = "canvas";
    this.context = canvas.getContext("2d", { alpha: false });
  }

  paint(view, { radius, ground, anyLit, opacity }) {
    const { canvas, context, places, styles } = this;
    context.globalAlpha = 1;
    context.fillStyle = `rgb(${ground})`;
    context.fillRect(0, 0, canvas.width, canvas.height);
    const r = Math.max(radius * view.ratio, 1);
    const looks = new Map(); // nodes by look, so that each look is set once
    for (let i = 0; i < places.length / 2; i++) {
      const at = 4 * i;
      if (!styles[at + 3]) continue;
      const key = (styles[at + 3] << 24) | (styles[at] << 16) | (styles[at + 1] << 8) | styles[at + 2];
      if (!looks.has(key)) looks.set(key, []);
      looks.get(key).push(i);
    }
    for (const [key, nodes] of [...looks].sort(([a], [b]) => a - b)) {
      const lit = key >> 24 > LIT;
      const shape = SHAPE_NAMES[(key >> 24) - 1 - (lit ? LIT : 0)];
      context.globalAlpha = anyLit && !lit ? Math.min(1 - FADE, opacity) : lit ? 0.94 : opacity;
      context.fillStyle = `rgb(${(key >> 16) & 255} ${(key >> 8) & 255} ${key & 255})`;
      const outline = new Path2D();
      outline.addPath(new Path2D(SHAPES[shape]), new DOMMatrix([r / 7, 0, 0, r / 7, (-8 * r) / 7, (-8 * r) / 7]));
      for (const i of nodes) {
        const x = (places[2 * i] - view.x) * view.scale * view.ratio + canvas.width / 2;
        const y = canvas.height / 2 - (places[2 * i + 1] - view.y) * view.scale * view.ratio;
        if (x < -r || y < -r || x > canvas.width + r || y > canvas.height + r) continue;
        if (r < 2.5) context.fillRect(x - r, y - r, 2 * r, 2 * r);
        else {
          context.setTransform(1, 0, 0, 1, x, y);
          context.fill(outline);
          context.setTransform(1, 0, 0, 1, 0, 0);
        }
      }
    }
  }
}
