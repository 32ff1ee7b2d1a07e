// server.mjs is the page of a server.

import { el, some, data, spark, bytes, clock } from "./dom.mjs";
import { Console } from "./console.mjs";
import { ask, send } from "./dialog.mjs";
import * as link from "./link.mjs";

const actions = data("actions"), allQuirks = data("quirks") || [];
const tabs = [["summary", "Summary"], ["drives", "Drives"], ["firmware", "Firmware"], ["sensors", "Sensors"], ["log", "Event log"], ["journal", "Journal"], ["objects", "Objects"], ["console", "Console"]];
const maxRows = 500, samples = 90;
const tones = { OK: "good", Warning: "warn", Critical: "bad" };

export class ServerPage {
  constructor(box, { close, state, objects, contents }) {
    Object.assign(this, { box, close, link: state, objectsOf: objects, contentsOf: contents, name: null, tab: "", lab: {} });
    this.body = el("div");
    this.terminal = new Console();
  }

  // open shows the page of a server, or none.
  open(name, tab) {
    if (name !== this.name) {
      Object.assign(this, { name, server: null, entries: [], readings: new Map(), described: null, contents: null, tab: "" });
      this.box.hidden = !name;
      this.box.replaceChildren();
      if (name) this.box.append(el("p", { class: "empty", text: `${name} …` }));
    }
    if (!name) return;
    const known = tabs.some(([id]) => id === tab) ? tab : "summary";
    if (known === this.tab) return;
    this.tab = known;
    this.terminal.reset();
    this.frame();
  }

  setLab(lab) { this.lab = lab; }

  set(server) {
    const first = !this.server;
    if (server.detail.name !== this.name) return;
    const state = this.server?.object.state, drives = JSON.stringify(this.server?.disks);
    this.server = server;
    if (first) this.frame(); else { this.head(); this.render("server"); }
    if (!first && this.tab === "drives" && drives !== JSON.stringify(server.disks)) this.lookAtDrives();
    if (!first && this.tab === "objects" && state !== server.object.state) this.describe();
  }

  sensors(all) {
    for (const s of all) {
      const known = this.readings.get(s.id) || [];
      known.push(s.reading);
      this.readings.set(s.id, known.slice(-samples));
    }
    this.sensorList = all;
    this.render("sensors");
  }

  journal(entries) {
    const last = this.entries.at(-1);
    if (last && entries.length && entries[0].time < last.time) this.entries = []; // the lab has sent all again
    this.entries = [...this.entries, ...entries].slice(-maxRows);
    this.render("journal");
  }

  // forget drops the journal: that of another time follows.
  forget() { this.entries = []; }

  // exchanges adds bodies to the entries of their requests.
  exchanges(all) {
    for (const x of all) {
      const same = (e) => e.kind === "request" && !e.exchanged && e.method === x.method && e.path === x.path && e.status === x.status;
      const entry = this.entries.findLast((e) => same(e) && e.time === x.time) || this.entries.findLast(same);
      if (entry) Object.assign(entry, { exchanged: true, requestBody: x.requestBody, responseBody: x.responseBody });
    }
    this.render("journal");
  }

  // consoleUntil shows the output of the console up to a time.
  consoleUntil(all) {
    this.terminal.reset();
    this.shown = "";
    for (const { at, text } of all) this.shown = this.terminal.add(at, text);
    this.render("console");
  }

  console({ at, text }) { this.shown = this.terminal.add(at, text); this.render("console"); }

  // frame renders all that does not change with the server: the head, the tabs and the actions.
  frame() {
    if (!this.server) return;
    this.top = el("div");
    this.body = el("div", { id: "tab" });
    const to = (id) => link.write({ ...this.link(), tab: id });
    this.box.replaceChildren(this.top,
      el("nav", { class: "tabs", "aria-label": "Parts of the server" }, tabs.map(([id, label]) => el("a", { href: to(id), "aria-current": id === this.tab ? "page" : null, text: label }))),
      this.body);
    this.head();
    this.parts = {};
    this[`begin_${this.tab}`]?.();
    this[`show_${this.tab}`]?.(); // all that has come so far
    if (!this.box.contains(document.activeElement) && document.activeElement === document.body) this.box.focus({ preventScroll: true });
  }

  head() {
    const s = this.server, d = s.detail, badge = (tone, text) => el("li", { class: "badge" }, el("span", { class: `swatch t-${tone}` }), text);
    this.top.replaceChildren(
      el("div", { class: "top" }, el("h2", { text: d.name }), el("button", { type: "button", class: "close", onclick: this.close, "aria-label": "Close the server's page" }, "✕")),
      el("p", { class: "sub", text: [d.manufacturer, d.model, d.rack && `rack ${d.rack}`].filter(Boolean).join(" · ") }),
      el("ul", { class: "badges" },
        badge(d.power === "On" ? "good" : d.power === "Off" ? "quiet" : "busy", `${d.power}, ${d.phase}`),
        s.object.state && badge(s.object.error ? "bad" : "info", s.object.state + (s.object.error ? `: ${s.object.error}` : "")),
        s.object.role && badge("special", s.object.role),
        badge(tones[s.health], `health ${s.health}`),
        badge(d.reach === "reachable" ? "good" : d.reach === "gone" ? "bad" : "busy", `BMC ${d.reach}`),
        s.faults.length + s.quirks.length > 0 && badge("bad", `${s.faults.length + s.quirks.length} faults`)));
  }

  // render renders the tab when it shows what has changed.
  render(what) {
    if (!this.server || !this.body.isConnected) return;
    const shows = { summary: ["server", "journal"], drives: ["server"], firmware: ["server"], sensors: ["sensors"], log: ["server"], journal: ["journal"], objects: [], console: ["console"] };
    if (what !== "server" || shows[this.tab].includes("server") || !this.body.childElementCount) {
      if (what === "server" || shows[this.tab].includes(what)) this[`show_${this.tab}`]?.();
    }
  }

  lists() {
    const s = this.server;
    return {
      bays: s.disks.bays.map((b) => ({ value: b.id, label: b.serial ? `${b.id} (${b.model})` : `${b.id} (empty)` })), slots: s.detail.media.map((m) => m.slot),
      faults: s.faults.map((f) => f.id), quirks: s.quirks, allQuirks,
    };
  }

  buttons(...groups) {
    return el("div", { class: "actions" }, actions.filter((a) => groups.includes(a.group)).map((a) =>
      el("button", { type: "button", text: `${a.label}…`, onclick: () => ask(a, this.name, this.lists()) })));
  }

  begin_summary() {
    this.parts = { facts: el("div"), time: el("ol", { class: "timeline" }) };
    this.body.replaceChildren(el("h3", { text: "Actions" }), this.buttons("Power", "Media", "Faults"), this.parts.facts, el("h3", { text: "History" }), this.parts.time);
  }

  show_summary() {
    const s = this.server, d = s.detail;
    const pairs = (rows) => el("dl", { class: "grid" }, rows.filter(([, v]) => v).map(([k, v]) => [el("dt", { text: k }), el("dd", {}, v)]));
    this.parts.facts.replaceChildren(...some([
      el("h3", { text: "Identity" }),
      pairs([["Serial", d.serial], ["UUID", mono(d.uuid)], ["Profile", d.profile], ["BIOS", d.bios], ["BMC firmware", d.bmc], ["Redfish", mono(d.redfish)], ["IPMI", d.ipmi && mono(d.ipmi)],
        ["User", d.username], ["NICs", el("span", {}, d.nics.map((n) => el("div", {}, `${n.name} `, mono(n.mac))))]]),
      el("h3", { text: "Boot" }),
      pairs([["Next boot", d.boot], ["Override", d.override.enabled === "Disabled" ? "none" : `${d.override.target} (${d.override.enabled}, ${d.override.mode})`],
        ["Running", d.running], ["Boots", String(d.boots)], ["Order", el("span", {}, d.order.map((o) => el("div", { text: `${o.name}${o.enabled ? "" : " (disabled)"}` })))],
        ["Virtual media", el("span", {}, d.media.map((m) => el("div", { text: `${m.slot}: ${m.inserted ? `${m.image} (${bytes(m.size)})` : "empty"}` })))]]),
      s.faults.length + s.quirks.length > 0 && el("h3", { text: "Faults and quirks" }),
      s.faults.length + s.quirks.length > 0 && el("ul", {}, s.faults.map((f) => el("li", {}, el("b", { text: f.id }), ` ${f.phase}: `, mono(rule(f)))), s.quirks.map((q) => el("li", {}, mono(q)))),
      d.tasks.length > 0 && el("h3", { text: "Tasks" }),
      d.tasks.length > 0 && table(["Task", "State", "Progress"], d.tasks.slice(-8).reverse().map((t) => [`${t.id} ${t.name}`, t.state + (t.fault ? `: ${t.fault}` : ""), progress(t.percent)]))]));
    this.timeline();
  }

  // timeline shows the states of the server and of its object, latest first.
  timeline() {
    const marks = [...this.entries.filter((e) => e.kind !== "request" && historic.test(e.what || "")).map((e) => ({ time: e.time, text: `${e.what.replaceAll(".", " ")}${e.text ? `: ${e.text}` : ""}`, tone: toneOf(e) })),
      ...(this.server.history || []).map((h) => ({ time: h.time, text: `host ${h.state}`, tone: h.error ? "bad" : "info" }))];
    marks.sort((a, b) => (a.time < b.time ? 1 : a.time > b.time ? -1 : 0));
    const shown = marks.slice(0, 40);
    this.parts.time.replaceChildren(...shown.map((m) => el("li", { class: `s-${m.tone}` }, el("time", { datetime: m.time, text: clock(m.time, this.lab.time) }), m.text)));
    if (!shown.length) this.parts.time.replaceChildren(el("li", { class: "empty", text: "Nothing has happened yet." }));
  }

  begin_drives() { this.parts = { list: el("div") }; this.body.replaceChildren(el("h3", { text: "Actions" }), this.buttons("Drives"), this.parts.list); this.lookAtDrives(); }

  // lookAtDrives reads what lies on the drives.
  async lookAtDrives() {
    const name = this.name, found = await this.contentsOf(name);
    if (name !== this.name || this.tab !== "drives") return;
    this.contents = found;
    this.show_drives();
  }

  show_drives() {
    const d = this.server.disks;
    this.parts.list.replaceChildren(...some([
      el("h3", { text: "Volumes" }),
      d.volumes.length ? table(["Volume", "RAID", "Size", "Health", "Drives", "Holds"], d.volumes.map((v) => [`${v.name || v.id}`, v.raid, num(bytes(v.capacity)),
        el("span", { "data-volume": v.id }, state(v.health === "OK" ? "OK" : v.health === "Warning" ? "degraded" : "failed", v.health), (v.work || []).map((w) => el("div", {}, `${w.kind} ${w.percent} %`, progress(w.percent)))), v.disks.join(", "), this.contents?.[`Volume.${v.controller}.${v.id}`] || "–"]))
        : el("p", { class: "empty", text: "No volumes." }),
      el("h3", { text: "Bays" }),
      table(["Bay", "Drive", "Size", "Health", "Holds"], d.bays.map((b) => b.serial
        ? [b.id, el("span", {}, b.model, el("div", { class: "mono", text: b.serial })), num(bytes(b.capacity)), state(b.predicted ? `${b.health}, failure predicted` : b.health, b.health),
          [b.volumes?.length ? `volume ${b.volumes.join(", ")}` : "", b.spare ? `${b.spare} spare` : "", this.contents?.[b.id] || ""].filter(Boolean).join("; ") || "–"]
        : [b.id, el("span", { class: "empty", text: "empty" }), "", "", ""])),
      d.shelf.length > 0 && el("h3", { text: "Pulled drives" }),
      d.shelf.length > 0 && table(["From", "Drive", "Size"], d.shelf.map((b) => [b.id, `${b.model || ""} ${b.serial}`, num(bytes(b.capacity))]))]));
  }

  show_firmware() {
    const b = this.server.bios, open = this.body.querySelector("details")?.open;
    const attributes = (all) => table(["Attribute", "Value"], all.map((a) => [mono(a.name), String(a.value)]));
    this.body.replaceChildren(
      el("h3", { text: "Components" }),
      table(["Component", "Version", "Staged"], this.server.firmware.map((c) => [c.name, c.broken ? state("broken", "Critical") : c.version, c.staged || (c.update ? `update ${c.update}` : "")])),
      el("h3", { text: "BIOS settings that wait for a reset" }), b.pending.length ? attributes(b.pending) : el("p", { class: "empty", text: "None." }),
      el("h3", { text: b.appliedAt ? `BIOS settings applied last, ${b.appliedAt}` : "BIOS settings applied last" }), b.applied.length ? attributes(b.applied) : el("p", { class: "empty", text: "None." }),
      el("h3", { text: "BIOS settings in force" }), el("details", { open }, el("summary", { text: `${b.attributes.length} attributes` }), attributes(b.attributes)));
  }

  begin_sensors() { this.parts = { rows: new Map() }; this.body.replaceChildren(el("p", { class: "empty", text: "Readings come every second." })); }

  show_sensors() {
    if (!this.sensorList) return;
    if (this.parts.rows.size !== this.sensorList.length) {
      this.parts.rows.clear();
      const rows = this.sensorList.map((s) => {
        const line = spark(`${s.name}, latest readings`), value = el("td", { class: "num" }), level = el("td");
        this.parts.rows.set(s.id, { line, value, level });
        return el("tr", {}, el("td", { text: s.name }), el("td", {}, line.svg), value, level);
      });
      this.body.replaceChildren(el("h3", { text: "Sensors" }), el("table", {}, el("thead", {}, el("tr", {}, ["Sensor", "Latest", "Reading", "Level"].map((h) => el("th", { scope: "col", text: h })))), el("tbody", {}, rows)));
    }
    for (const s of this.sensorList) {
      const row = this.parts.rows.get(s.id);
      row.line.draw(this.readings.get(s.id));
      row.value.textContent = s.reading === null ? "–" : `${s.reading} ${s.unit}`;
      row.level.textContent = s.reading === null ? "" : s.level || "normal";
    }
  }

  show_log() {
    const log = this.server.log;
    this.body.replaceChildren(el("h3", { text: `Event log, ${this.server.detail.logEntries} entries` }), log.length
      ? table(["Time", "Severity", "Subject", "Event"], log.map((e) => [num(clock(e.time, this.lab.time)), state(e.severity, e.severity), e.subject, e.text])) : el("p", { class: "empty", text: "The log is empty." }));
  }

  begin_journal() {
    this.parts = { list: el("div") };
    const only = el("select", { id: "kind" }, ["all", "requests", "events"].map((o) => el("option", { text: o })));
    only.addEventListener("change", () => this.show_journal(true));
    this.parts.only = only;
    this.body.replaceChildren(el("h3", { text: "Journal" }), el("div", { class: "field" }, el("label", { for: "kind", text: "Show" }), only), this.parts.list);
  }

  show_journal() {
    const only = this.parts.only.value, unfolded = new Set([...this.parts.list.querySelectorAll("details[open]")].map((d) => d.dataset.key));
    const shown = this.entries.filter((e) => only === "all" || (e.kind === "request") === (only === "requests")).slice(-200).reverse();
    this.parts.list.replaceChildren(...shown.map((e) => {
      const key = `${e.time} ${e.method || e.what} ${e.path || e.text}`, at = clock(e.time, this.lab.time);
      const title = e.kind === "request" ? [mono(`${at} ${e.method} ${e.path} `), state(String(e.status || "no answer"), e.status >= 500 || !e.status && e.method !== "IPMI" ? "Critical" : e.status >= 400 ? "Warning" : "OK")]
        : [mono(`${at} `), `${e.what} ${e.text || ""}`];
      return el("details", { "data-key": key, open: unfolded.has(key) }, el("summary", {}, title), el("pre", { text: detail(e) }));
    }));
    if (!shown.length) this.parts.list.replaceChildren(el("p", { class: "empty", text: "Nothing yet." }));
  }

  begin_objects() { this.body.replaceChildren(el("p", { class: "empty", text: "…" })); this.describe(); }

  async describe() {
    const name = this.name;
    let all;
    try { all = await this.objectsOf(name); } catch (e) { this.body.replaceChildren(el("p", { class: "refused", text: e.message })); return; }
    if (name !== this.name || this.tab !== "objects") return;
    const open = new Set([...this.body.querySelectorAll("details[open] summary")].map((s) => s.textContent));
    this.body.replaceChildren(el("h3", { text: "Kubernetes objects" }), ...(all.length ? all.map((o, i) => {
      const title = `${o.kind} ${o.name}`;
      return el("details", { open: open.has(title) || (i === 0 && !open.size) }, el("summary", { text: title }), el("pre", { text: o.yaml }));
    }) : [el("p", { class: "empty", text: this.lab.kube ? "There is no object of this server." : "This lab has no Kubernetes API." })]));
  }

  begin_console() {
    const out = el("pre", { class: "term", tabindex: "0", role: "log", "aria-label": "Output of the serial console", text: this.shown || "" });
    const line = el("input", { id: "line", type: "text", autocomplete: "off", autocapitalize: "off", spellcheck: "false", "aria-label": "Text to type at the console" });
    const to = `/hosts/${encodeURIComponent(this.name)}/console`, refuse = (e) => { this.parts.refused.textContent = e.message; };
    let sent = Promise.resolve(); // one request at a time, so that keys arrive in their order
    const type = (text) => { sent = sent.then(() => send(to, text, "text/plain")).catch(refuse); };
    const form = el("form", { class: "typed" }, line, el("button", { type: "submit", text: "Type" }));
    form.addEventListener("submit", (e) => { e.preventDefault(); this.parts.refused.textContent = ""; type(`${line.value}\r`); line.value = ""; });
    if (!document.documentElement.dataset.recorded) out.addEventListener("keydown", (e) => {
      const keys = { Enter: "\r", Backspace: "\x7f", Tab: null, ArrowUp: "\x1b[A", ArrowDown: "\x1b[B", ArrowRight: "\x1b[C", ArrowLeft: "\x1b[D" };
      const text = e.ctrlKey && /^[a-z]$/.test(e.key) && e.key !== "v" ? String.fromCharCode(e.key.charCodeAt(0) - 96) : e.key.length === 1 && !e.ctrlKey && !e.metaKey ? e.key : keys[e.key];
      if (!text) return;
      e.preventDefault();
      type(text);
    });
    this.parts = { out, refused: el("p", { class: "refused", role: "alert" }) };
    this.shown = "";
    this.body.replaceChildren(out, form, this.parts.refused, el("p", { class: "empty", text: "Focus the output to type key by key; Tab leaves it." }), this.buttons("Console"));
  }

  show_console() {
    const out = this.parts.out, atEnd = out.scrollHeight - out.scrollTop - out.clientHeight < 40;
    out.textContent = this.shown || "";
    if (atEnd) out.scrollTop = out.scrollHeight;
  }
}

const historic = /^(power\.|boot\.|os\.|bmc\.life|media\.|mains|drive|volume|host\.|task\.opened)/;
const toneOf = (e) => (/(fail|critical|lost|removed|degraded)/.test(`${e.what} ${e.text}`) ? "bad" : /started|on$|On$|inserted/.test(`${e.what} ${e.text}`) ? "good" : /tried|state/.test(e.what) ? "busy" : "info");

const mono = (text) => el("span", { class: "mono", text });
const num = (text) => Object.assign(el("span", { text }), { numeric: true });
const progress = (percent) => { const i = el("i"); i.style.width = `${percent}%`; return el("div", { class: "bar", role: "img", "aria-label": `${percent} %` }, i); };
const state = (text, level) => el("span", { class: "badge" }, el("span", { class: `swatch t-${tones[level] || "quiet"}` }), text);

function table(head, rows) {
  return el("table", {}, el("thead", {}, el("tr", {}, head.map((h) => el("th", { scope: "col", text: h })))),
    el("tbody", {}, rows.map((r) => el("tr", {}, r.map((c) => el("td", { class: c?.numeric ? "num" : null }, c))))));
}

function rule(f) { const { id, added, phase, hits, ...rest } = f; return JSON.stringify(rest); }

function detail(e) {
  const { requestBody, responseBody, exchanged, ...rest } = e;
  const lines = Object.entries(rest).map(([k, v]) => `${k}: ${typeof v === "string" ? v : JSON.stringify(v)}`);
  return [lines.join("\n"), requestBody && `\nRequest:\n${requestBody}`, responseBody && `\nResponse:\n${responseBody}`, e.kind === "request" && e.method !== "IPMI" && !exchanged && "\nBodies are there of requests that come while this page is open."].filter(Boolean).join("\n");
}
