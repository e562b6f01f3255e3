// The data of the page: arrays as base64 of little-endian numbers, ids and names as JSON.

const ARRAYS = {
  f4: Float32Array, i4: Int32Array, i2: Int16Array, u1: Uint8Array, u2: Uint16Array, u4: Uint32Array,
};

function unpack({ type, data }) {
  if (Uint8Array.fromBase64) return new ARRAYS[type](Uint8Array.fromBase64(data).buffer);
  const text = atob(data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new ARRAYS[type](bytes.buffer);
}

// Classes of nodes, by which they are coloured, listed in the legend and hidden.
class Colouring {
  constructor(given) {
    Object.assign(this, { key: given.key, name: given.name, ordered: given.ordered, classes: given.classes });
    this.codes = unpack(given.codes);
    this.starts = given.starts && unpack(given.starts);
    this.values = given.values && unpack(given.values);
  }

  // The range [from, to) of the classes of node i in `codes`.
  range(i) {
    if (this.starts) return [this.starts[i], this.starts[i + 1]];
    return [i, this.codes[i] < 0 ? i : i + 1];
  }

  // The text for node i: its value, or the names of its classes.
  text(i) {
    if (this.values) return this.values[i].toLocaleString("en");
    const [from, to] = this.range(i);
    if (from === to) return "none";
    return Array.from(this.codes.subarray(from, to), (code) => this.classes[code]).join(", ");
  }
}

class Data {
  constructor(given) {
    this.title = given.title;
    this.facts = given.facts;
    const places = unpack(given.places);
    this.n = places.length / 2;
    this.places = places;
    this.ids = given.ids; // null: 0, 1, 2 …
    this.colourings = given.colourings.map((one) => new Colouring(one));
    this.k = given.nearest ? given.nearest.k : 0;
    this.steps = this.k ? given.nearest.steps : 1;
    this.near = this.k ? unpack(given.nearest.rows) : null;
    this.nearness = this.k ? unpack(given.nearest.similarities) : null;
    this.hasGraph = Boolean(given.links);
    this.linkStarts = this.hasGraph ? unpack(given.links.starts) : null;
    this.linkEnds = this.hasGraph ? unpack(given.links.ends) : null;
    this.degrees = this.hasGraph ? this.colourings.find((one) => one.key === "degree").values : null;
  }

  id(i) {
    return this.ids === null ? String(i) : this.ids[i];
  }

  nearest(i) {
    return this.k ? Array.from(this.near.subarray(i * this.k, (i + 1) * this.k)) : [];
  }

  similarity(i, rank) {
    return (this.nearness[i * this.k + rank] / this.steps) * 2 - 1;
  }

  links(i) {
    return this.hasGraph ? Array.from(this.linkEnds.subarray(this.linkStarts[i], this.linkStarts[i + 1])) : [];
  }

  // Up to `most` nodes whose id contains the text: exact matches first, then ids that start with it.
  find(text, most) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return [];
    const found = [[], [], []];
    for (let i = 0; i < this.n; i++) {
      const id = this.id(i).toLowerCase();
      const at = id.indexOf(wanted);
      if (at < 0) continue;
      const rank = at > 0 ? 2 : id.length === wanted.length ? 0 : 1;
      if (found[rank].length < most) found[rank].push(i);
      if (found[0].length + found[1].length >= most) break;
    }
    return found.flat().slice(0, most);
  }
}
