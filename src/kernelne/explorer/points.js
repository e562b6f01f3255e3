// All points in one go: by WebGL where there is one, else on a canvas with a picture kept for quick moves.
//
// The style of a node is four bytes: red, green, blue, and 0 (hidden) or 1 + shape (+ LIT). Where some nodes are
// lit the others step back.

const LIT = 8;
const FADE = 0.8;

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
uniform float size, pass;
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
  gl_FragColor = vec4(mix(mix(colour, ground, rim), ground, faded), inside * 0.94);
}`;

class GlPoints {
  constructor(canvas, places, onRestored) {
    this.name = "WebGL";
    this.canvas = canvas;
    this.places = places;
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
    for (const name of ["centre", "scale", "size", "pass", "ground"]) {
      this.uniforms[name] = gl.getUniformLocation(this.program, name);
    }
    this.attribute("place", 2, gl.FLOAT);
    gl.bufferData(gl.ARRAY_BUFFER, this.places, gl.STATIC_DRAW);
    this.styles = this.attribute("style", 4, gl.UNSIGNED_BYTE);
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
    gl.bindBuffer(gl.ARRAY_BUFFER, this.styles);
    gl.bufferData(gl.ARRAY_BUFFER, styles, gl.DYNAMIC_DRAW);
  }

  draw(view, radius, ground, anyLit) {
    const { gl, uniforms } = this;
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clearColor(...ground.map((value) => value / 255), 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.uniform2f(uniforms.centre, view.x, view.y);
    gl.uniform2f(uniforms.scale, (2 * view.scale) / view.width, (2 * view.scale) / view.height);
    gl.uniform1f(uniforms.size, 2 * radius * view.ratio + 1);
    gl.uniform3f(uniforms.ground, ...ground.map((value) => value / 255));
    for (const pass of anyLit ? [0, 1] : [-1]) {
      gl.uniform1f(uniforms.pass, pass);
      gl.drawArrays(gl.POINTS, 0, this.places.length / 2);
    }
  }
}

class CanvasPoints {
  constructor(canvas, places, onRest) {
    this.name = "canvas";
    this.canvas = canvas;
    this.places = places;
    this.context = canvas.getContext("2d", { alpha: false });
    this.kept = document.createElement("canvas");
    this.keptView = null;
    this.onRest = onRest;
    this.timer = 0;
  }

  setStyles(styles) {
    this.styles = styles;
    this.keptView = null;
  }

  // While one moves, the picture kept is moved with it; it is drawn anew when one rests.
  draw(view, radius, ground, anyLit, moving) {
    const fresh = this.keptView && this.keptView.ground === String(ground) && this.keptView.anyLit === anyLit;
    if (!fresh || !moving) this.paint(view, radius, ground, anyLit);
    else {
      clearTimeout(this.timer);
      this.timer = setTimeout(this.onRest, 150);
    }
    const { context, kept, keptView: old } = this;
    context.fillStyle = `rgb(${ground})`;
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    const zoom = view.scale / old.scale;
    const left = ((old.x - view.x) * view.scale + view.width / 2) * view.ratio - (kept.width / 2) * zoom;
    const top = (view.height / 2 - (old.y - view.y) * view.scale) * view.ratio - (kept.height / 2) * zoom;
    context.drawImage(kept, left, top, kept.width * zoom, kept.height * zoom);
  }

  paint(view, radius, ground, anyLit) {
    const { kept, places, styles } = this;
    kept.width = this.canvas.width * 1.5;
    kept.height = this.canvas.height * 1.5;
    this.keptView = { x: view.x, y: view.y, scale: view.scale, ground: String(ground), anyLit };
    const context = kept.getContext("2d");
    const r = Math.max(radius * view.ratio, 1);
    const looks = new Map(); // nodes by look, so that each is filled at once
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
      context.globalAlpha = anyLit && !lit ? 1 - FADE : 0.94;
      context.fillStyle = `rgb(${(key >> 16) & 255} ${(key >> 8) & 255} ${key & 255})`;
      const outline = new Path2D();
      outline.addPath(new Path2D(SHAPES[shape]), new DOMMatrix([r / 7, 0, 0, r / 7, (-8 * r) / 7, (-8 * r) / 7]));
      for (const i of nodes) {
        const x = (places[2 * i] - view.x) * view.scale * view.ratio + kept.width / 2;
        const y = kept.height / 2 - (places[2 * i + 1] - view.y) * view.scale * view.ratio;
        if (x < -r || y < -r || x > kept.width + r || y > kept.height + r) continue;
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
