// rack.mjs draws all racks on one canvas: one tile for each server. It draws again only the
// tiles that have changed, once a frame.

export const stats = { frames: 0, redrawn: 0, layouts: 0, script: 0 };

// The spaces around tiles, in pixels: of some, and of thousands.
const roomy = { gap: 14, head: 18, pad: 6, between: 4, line: 2, font: 11 }, dense = { gap: 6, head: 12, pad: 3, between: 1, line: 1, font: 9 };
const many = 1500, least = { w: 4, h: 3 };

export class Rack {
  constructor(box, canvas, cursor) {
    Object.assign(this, { box, canvas, cursor, tiles: [], racks: [], places: [], dirty: new Set(), all: false, frame: 0, picked: -1 });
    this.pen = canvas.getContext("2d", { alpha: false });
    this.tone = () => "quiet";
    this.fits = () => true;
    new ResizeObserver(() => this.layout()).observe(box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.readColours(); this.redraw(); });
    matchMedia("print").addEventListener("change", () => { this.readColours(); this.all = true; this.draw(); }); // paper waits for no frame
    this.readColours();
  }

  readColours() {
    const css = getComputedStyle(document.documentElement);
    this.colours = {};
    for (const name of ["bg", "panel", "frame", "line", "text", "dim", "good", "busy", "warn", "bad", "info", "special", "quiet"]) {
      this.colours[name] = css.getPropertyValue(`--${name}`).trim();
    }
  }

  // set takes tiles that have changed; new ones change the layout.
  set(changed) {
    let grown = false;
    for (const t of changed) {
      grown ||= !this.tiles[t.i];
      this.tiles[t.i] = t;
      this.dirty.add(t.i);
    }
    if (grown) this.layout(); else this.schedule();
  }

  redraw() { this.all = true; this.schedule(); }

  schedule() { this.frame ||= requestAnimationFrame(() => this.draw()); }

  // group returns the racks with the indices of their servers, in the order of the lab.
  group() {
    const byName = new Map();
    for (const t of this.tiles) {
      if (!t) continue;
      if (!byName.has(t.rack)) byName.set(t.rack, []);
      byName.get(t.rack).push(t.i);
    }
    return [...byName].map(([name, servers]) => ({ name, servers }));
  }

  // layout finds the largest tiles with which all racks fit into the box.
  layout() {
    const W = this.box.clientWidth, H = this.box.clientHeight;
    if (!W || !H || !this.tiles.length) return;
    stats.layouts++;
    this.space = this.tiles.length > many ? dense : roomy;
    this.racks = this.group();
    const most = Math.max(...this.racks.map((r) => r.servers.length));
    const { pad, between } = this.space, columns = Math.max(Math.floor((W - 2 * pad + between) / (least.w + between)), 1);
    const fewest = Math.ceil(most / columns); // rows with which the largest rack is no wider than the box
    let best = null;
    for (let rows = Math.min(most, Math.max(48, fewest)); rows >= fewest; rows = rows > 12 ? rows - 2 : rows - 1) {
      for (const aspect of [7, 5, 3.4, 2.2, 1.5]) {
        let low = 1, high = 30;
        for (let i = 0; i < 9; i++) {
          const h = (low + high) / 2;
          if (this.place(rows, Math.min(h * aspect, 190), h, W, false) <= H) low = h; else high = h;
        }
        const w = Math.min(low * aspect, 190), fits = this.place(rows, w, low, W, false) <= H;
        // What does not fit is scrolled down, with the least tiles.
        const score = fits ? 1e6 + w * low + (w > 64 && low > 12 ? 400 : 0) + Math.min(rows, 42) * 0.5 : -this.place(rows, least.w, least.h, W, false);
        if (!best || score > best.score) best = fits ? { score, rows, w, h: low } : { score, rows, ...least };
      }
    }
    const w = Math.max(Math.floor(best.w), least.w), h = Math.max(Math.floor(best.h), least.h);
    const height = Math.max(this.place(best.rows, w, h, W, true), 40);
    const scale = devicePixelRatio || 1;
    this.size = { W, H: Math.ceil(height), w, h };
    this.canvas.width = Math.round(W * scale);
    this.canvas.height = Math.round(this.size.H * scale);
    this.canvas.style.width = `${W}px`;
    this.canvas.style.height = `${this.size.H}px`;
    this.pen.setTransform(scale, 0, 0, scale, 0, 0);
    this.redraw();
    this.mark(this.picked);
  }

  // place returns the height that the racks take with rows of tiles of that size; keep stores
  // the places.
  place(rows, w, h, W, keep) {
    const { gap, head, pad, between, line: low } = this.space;
    let x = 0, y = 0, line = 0;
    for (const r of this.racks) {
      const n = r.servers.length, deep = Math.min(rows, n), columns = Math.ceil(n / rows);
      const rw = columns * (w + between) + 2 * pad - between, rh = deep * (h + low) + head + pad;
      if (x > 0 && x + rw > W) { x = 0; y += line + gap; line = 0; }
      if (rw > W && !keep) return Infinity;
      if (keep) {
        Object.assign(r, { x, y, w: rw, h: rh });
        r.servers.forEach((server, i) => {
          this.places[server] = { x: x + pad + Math.floor(i / rows) * (w + between), y: y + head + (i % rows) * (h + low), w, h, column: Math.floor(i / rows), row: i % rows };
        });
      }
      x += rw + gap;
      line = Math.max(line, rh);
    }
    return y + line;
  }

  draw() {
    const began = performance.now();
    this.frame = 0;
    stats.frames++;
    const p = this.pen;
    if (this.all && this.size) {
      p.globalAlpha = 1;
      p.fillStyle = this.colours.bg;
      p.fillRect(0, 0, this.size.W, this.size.H);
      p.textBaseline = "middle";
      for (const r of this.racks) {
        p.fillStyle = this.colours.frame;
        p.beginPath();
        p.roundRect(r.x, r.y, r.w, r.h, 5);
        p.fill();
        if (r.w > 22) {
          p.fillStyle = this.colours.dim;
          p.font = `600 ${this.space.font}px system-ui, sans-serif`;
          p.fillText(r.name || "servers", r.x + this.space.pad + 1, r.y + this.space.head / 2, r.w - 2 * this.space.pad);
        }
      }
      this.dirty = new Set(this.tiles.keys());
    }
    this.all = false;
    if (this.size) {
      p.font = `${Math.min(11, Math.max(8, this.size.h - 4))}px system-ui, sans-serif`;
      for (const i of this.dirty) this.drawTile(i);
      stats.redrawn += this.dirty.size;
    }
    this.dirty.clear();
    stats.script += performance.now() - began;
  }

  drawTile(i) {
    const t = this.tiles[i], at = this.places[i];
    if (!t || !at) return;
    const p = this.pen, c = this.colours, named = at.w > 58 && at.h > 10;
    p.globalAlpha = 1;
    p.fillStyle = c.frame;
    p.fillRect(at.x, at.y, at.w, at.h);
    p.globalAlpha = this.fits(t) ? 1 : 0.16;
    p.fillStyle = c[this.tone(t)] || c.quiet;
    if (!named) {
      p.fillRect(at.x, at.y, at.w, at.h);
    } else {
      p.fillStyle = c.panel;
      p.fillRect(at.x, at.y, at.w, at.h);
      p.fillStyle = c[this.tone(t)] || c.quiet;
      p.fillRect(at.x, at.y, 6, at.h);
      p.globalAlpha *= 0.16;
      p.fillRect(at.x + 6, at.y, at.w - 6, at.h);
      p.globalAlpha = this.fits(t) ? 1 : 0.3;
      p.fillStyle = c.text;
      p.fillText(t.name, at.x + 12, at.y + at.h / 2 + 0.5, at.w - 30);
      p.fillStyle = t.power === "On" ? c.good : t.power.startsWith("Powering") ? c.busy : c.quiet;
      p.beginPath();
      p.arc(at.x + at.w - 8, at.y + at.h / 2, Math.min(3, at.h / 4), 0, 7);
      p.fill();
    }
    if (t.faults || t.health !== "OK" || t.bmc !== "reachable") {
      p.fillStyle = t.health === "Critical" || t.bmc === "gone" ? c.bad : c.warn;
      const s = named ? 3 : Math.min(3, at.w / 2);
      p.fillRect(at.x + at.w - s, at.y, s, named ? at.h : Math.min(3, at.h));
    }
    p.globalAlpha = 1;
  }

  // at returns the index of the server at a point of the canvas; -1 for none.
  at(x, y) {
    const r = this.racks.find((r) => x >= r.x && x <= r.x + r.w && y >= r.y && y <= r.y + r.h);
    if (!r) return -1;
    return r.servers.find((i) => { const p = this.places[i]; return x >= p.x && x < p.x + p.w + this.space.between && y >= p.y && y < p.y + p.h + this.space.line; }) ?? -1;
  }

  // mark shows the cursor at a server.
  mark(i, scroll) {
    this.picked = i;
    const at = this.places[i];
    this.cursor.hidden = !at;
    if (!at) return;
    Object.assign(this.cursor.style, { left: `${at.x - 2}px`, top: `${at.y - 2}px`, width: `${at.w + 4}px`, height: `${at.h + 4}px` });
    if (scroll && (at.y < this.box.scrollTop || at.y + at.h > this.box.scrollTop + this.box.clientHeight)) this.box.scrollTop = at.y - this.box.clientHeight / 2;
  }

  // step returns the server beside the cursor for an arrow key.
  step(key) {
    const last = this.tiles.length - 1, at = this.places[this.picked];
    if (key === "Home") return 0;
    if (key === "End") return last;
    if (!at) return 0;
    if (key === "ArrowDown") return Math.min(last, this.picked + 1);
    if (key === "ArrowUp") return Math.max(0, this.picked - 1);
    const way = key === "ArrowRight" ? 1 : -1;
    let best = this.picked, distance = Infinity;
    this.places.forEach((p, i) => {
      const dx = (p.x - at.x) * way;
      if (dx <= 0) return;
      const d = dx + Math.abs(p.y - at.y) * 6;
      if (d < distance) { distance = d; best = i; }
    });
    return best;
  }
}
