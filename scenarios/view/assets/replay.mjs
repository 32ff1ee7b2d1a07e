// replay.mjs shows a recording: it takes the place of the lab's events, at a time that the
// slider chooses.

import { data } from "./dom.mjs";

export class Replay {
  constructor(handlers, status, moved) {
    Object.assign(this, { handlers, status, moved, lines: [], next: 0, host: null, typing: false, at: 0, servers: new Map(), objects: new Map(), playing: 0 });
  }

  // load reads the recording.
  async load() {
    this.status("loading");
    for (const text of (await read()).split("\n")) {
      if (!text) continue;
      const line = JSON.parse(text);
      line.time = Date.parse(line.at);
      this.lines.push(line);
    }
    if (!this.lines.length) throw new Error("The recording is empty.");
    this.first = this.lines[0].time;
    this.last = Math.max(this.lines.at(-1).time, this.first + 1);
    this.snapshots = this.lines.filter((l) => l.kind === "snapshot").sort((a, b) => a.time - b.time);
    this.status("recorded");
  }

  // open shows a server, or none, and its console.
  open(host, console) {
    if (host === this.host && console === this.typing) return;
    this.host = host;
    this.typing = console;
    this.showServer();
  }

  // scale returns the place of a time on a slider from 0 to 1000.
  scale(time) { return Math.min(Math.max(((time - this.first) / (this.last - this.first)) * 1000, 0), 1000); }

  // timeAt returns the time of a place on the slider; places beside a snapshot are its time.
  timeAt(place) {
    const near = this.snapshots.find((s) => Math.abs(this.scale(s.time) - place) <= 0.5);
    return near ? near.time : this.first + ((this.last - this.first) * place) / 1000;
  }

  // snapshot returns the latest snapshot at or before the time that is shown, or undefined.
  snapshot() { return this.snapshots.findLast((s) => s.time <= this.at); }

  // seek moves to a time.
  seek(time) {
    time = Math.min(Math.max(time, this.first), this.last);
    const back = time < this.at;
    if (back) { this.next = 0; this.servers.clear(); this.objects.clear(); }
    this.at = time;
    const changed = new Map();
    let lab = null, touched = back;
    while (this.next < this.lines.length && this.lines[this.next].time <= time) {
      const { kind, host, data } = this.lines[this.next++];
      if (kind === "lab") lab = data;
      else if (kind === "tiles") for (const t of data) changed.set(t.i, t);
      else if (kind === "server") { this.servers.set(host, { ...this.servers.get(host), ...data }); touched ||= host === this.host; }
      else if (kind === "objects") { this.objects.set(host, data); touched ||= host === this.host; }
      else if (kind === "console") touched ||= host === this.host;
      else if (kind === "journal" || kind === "exchanges") touched = true;
    }
    if (lab) this.handlers.lab(lab);
    if (changed.size) this.handlers.tiles([...changed.values()]);
    if (touched) this.showServer();
    this.moved(time);
  }

  showServer() {
    const server = this.host && this.servers.get(this.host);
    if (!server) return;
    this.handlers.server(server);
    this.handlers.forget();
    const seen = this.lines.slice(0, this.next), mine = (kind) => seen.filter((l) => l.kind === kind).flatMap((l) => l.data).filter((e) => e.host === this.host);
    this.handlers.journal(mine("journal"));
    this.handlers.exchanges(mine("exchanges"));
    if (this.typing) this.handlers.console(seen.filter((l) => l.kind === "console" && l.host === this.host).map((l) => l.data));
  }

  // play moves on, through the recording in a minute at most.
  play(on) {
    clearInterval(this.playing);
    this.playing = 0;
    if (!on) return;
    if (this.at >= this.last) this.seek(this.first);
    const step = Math.max((this.last - this.first) / 600, 50);
    this.playing = setInterval(() => { this.seek(this.at + step); if (this.at >= this.last) this.play(false); }, 100);
  }
}

// read returns the lines, which a page that is a file has in it.
async function read() {
  if (document.getElementById("recording")) {
    const packed = Uint8Array.from(atob(data("recording")), (c) => c.charCodeAt(0));
    return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }
  const r = await fetch("/recording");
  if (!r.ok) throw new Error(await r.text());
  return r.text();
}
