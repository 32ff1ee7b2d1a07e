// app.mjs is the page: it takes the lab's events, follows the link, and draws.

import { el, data, clock } from "./dom.mjs";
import { parse, term, fieldNames } from "./query.mjs";
import * as link from "./link.mjs";
import { Rack, stats } from "./rack.mjs";
import { Stream } from "./stream.mjs";
import { Counts } from "./counts.mjs";
import { ServerPage } from "./server.mjs";
import { toast } from "./dialog.mjs";
import { Replay } from "./replay.mjs";

const $ = (id) => document.getElementById(id);
const schemes = data("schemes");
const rack = new Rack($("rack"), $("canvas"), $("cursor"));
const counts = new Counts(schemes);
const byName = new Map(); // index of a server
const recorded = document.documentElement.dataset.recorded; // its file
let state = link.read(), query = parse(""), scheme = schemes[0];

const page = new ServerPage($("server"), {
  close: () => { link.go({ ...state, server: null }); $("rack").focus(); },
  state: () => state,
  objects: async (name) => (recorded ? stream.objects.get(name) || [] : get(`/hosts/${encodeURIComponent(name)}/objects`)),
  contents: async (name) => (recorded ? {} : get(`/hosts/${encodeURIComponent(name)}/contents`)),
});

async function get(path) {
  const r = await fetch(path);
  if (!r.ok) throw new Error((await r.text()).trim() || r.statusText);
  return r.json();
}

const stream = new (recorded ? Replay : Stream)({
  lab(s) {
    $("hosts").textContent = s.hosts.toLocaleString("en");
    $("time").textContent = `${s.time.slice(0, 10)} ${clock(s.time)}`;
    $("speed").textContent = s.speed;
    $("storage").hidden = !s.storage;
    $("storage").lastElementChild.textContent = s.storage || "";
    page.setLab(s);
  },
  tiles(all) {
    for (const t of all) {
      const was = rack.tiles[t.i];
      counts.change(was, t, query.matches);
      byName.set(t.name, t.i);
    }
    rack.set(all);
    showCounts();
    if (state.server && rack.picked < 0) pick(byName.get(state.server), true);
    else if (all.some((t) => t.i === rack.picked)) announce(rack.picked);
  },
  server: (s) => page.set(s),
  sensors: (s) => page.sensors(s),
  forget: () => page.forget(),
  journal: (entries) => page.journal(entries),
  exchanges: (all) => page.exchanges(all),
  console: (c) => (recorded ? page.consoleUntil(c) : page.console(c)),
}, (status) => {
  $("link").textContent = status;
  $("link").classList.toggle("live", status !== "connecting" && status !== "loading");
}, (time) => {
  $("moment").textContent = second(time);
  $("at").value = Math.round(stream.scale(time));
  $("at").setAttribute("aria-valuetext", $("moment").textContent);
  $("play").textContent = stream.playing ? "Pause" : "Play";
  $("play").setAttribute("aria-pressed", String(Boolean(stream.playing)));
  showSnapshot();
});

function follow() {
  const was = state;
  state = link.read();
  scheme = schemes.find((s) => s.name === state.colour) || schemes[0];
  query = parse(state.q);
  const tones = new Map(scheme.shades.map((s) => [s.value, s.tone]));
  rack.tone = (t) => tones.get(String(t[scheme.field] ?? "")) || scheme.other;
  rack.fits = (t) => (query.empty || query.matches(t)) && (state.rack === null || state.server || t.rack === state.rack);
  $("colour").value = scheme.name;
  if (document.activeElement !== $("query")) $("query").value = state.q;
  if (was.q !== state.q) counts.match(rack.tiles, query.matches);
  showCounts();
  rack.redraw();
  document.body.classList.toggle("open", Boolean(state.server));
  page.open(state.server, state.tab);
  document.title = `${state.server ? `${state.server} · ` : ""}${$("colour").dataset.lab || document.querySelector("h1").textContent} · Metalab`;
  if (state.server) pick(byName.get(state.server) ?? -1, was.server !== state.server);
  stream.open(state.server, state.tab === "console");
  if (recorded && stream.first && state.at && Date.parse(state.at) !== stream.at) stream.seek(Date.parse(state.at));
}

// showRecording reads the recording and moves to the time of the link, or to its end.
async function showRecording() {
  await stream.load();
  $("replay").hidden = false;
  const to = (time) => { stream.seek(time); link.go({ ...state, at: new Date(stream.at).toISOString() }, true); };
  $("at").addEventListener("input", (e) => { stream.play(false); to(stream.timeAt(Number(e.target.value))); });
  $("marks").replaceChildren(...stream.snapshots.map((s) => el("option", { value: String(Math.round(stream.scale(s.time))) })));
  $("snapshots").hidden = !stream.snapshots.length;
  $("snapshots").replaceChildren(el("span", { text: "Snapshots" }),
    ...stream.snapshots.map((s) => el("button", { type: "button", title: s.data.file, "data-time": s.time, onclick: () => { stream.play(false); to(s.time); }, text: second(s.time) })), el("code"));
  $("play").addEventListener("click", () => { stream.play(!stream.playing); stream.moved(stream.at); });
  $("replay").addEventListener("submit", (e) => e.preventDefault());
  stream.seek(Date.parse(state.at) || stream.last);
}

const second = (time) => new Date(time).toISOString().slice(0, 19).replace("T", " ");

// showSnapshot marks the snapshot from which a lab can go on, with the command that does it.
function showSnapshot() {
  const at = stream.snapshot(), code = $("snapshots").querySelector("code");
  if (!code) return;
  for (const b of $("snapshots").querySelectorAll("button")) b.setAttribute("aria-pressed", String(Number(b.dataset.time) === at?.time));
  code.textContent = at ? `labctl up --from '${recorded}@${new Date(at.time).toISOString()}' --state NEW` : "There is none before this time.";
}

const rows = new Map(); // of the legend, by value

function showCounts() {
  const seen = counts.of(scheme);
  const labels = new Map(scheme.shades.map((s) => [s.value, s]));
  const values = [...scheme.shades.map((s) => s.value), ...[...seen.keys()].filter((v) => !labels.has(v)).sort()].filter((v) => seen.get(v));
  const legend = $("legend");
  if (legend.dataset.scheme !== scheme.name || values.join("\n") !== legend.dataset.values) {
    legend.dataset.scheme = scheme.name;
    legend.dataset.values = values.join("\n");
    rows.clear();
    legend.replaceChildren(...values.map((v) => {
      const shade = labels.get(v) || { label: v, tone: scheme.other };
      const n = el("b");
      rows.set(v, n);
      return el("li", {}, el("button", { type: "button", title: `Find ${scheme.field}:${v}`, onclick: () => toggle(term(scheme.field, v)) },
        el("span", { class: `swatch t-${shade.tone}` }), shade.label, n));
    }));
  }
  for (const [v, n] of rows) {
    const text = seen.get(v).toLocaleString("en");
    if (n.textContent !== text) n.textContent = text;
  }
  $("found").textContent = query.wrong.length ? `no field ${query.wrong.join(", ")}: use ${fieldNames.join(", ")}`
    : query.empty ? "" : `${counts.matched.toLocaleString("en")} of ${counts.all.toLocaleString("en")} match`;
}

function toggle(t) {
  const terms = state.q.split(/\s+(?=(?:[^"]*"[^"]*")*[^"]*$)/).filter(Boolean);
  const q = (terms.includes(t) ? terms.filter((o) => o !== t) : [...terms, t]).join(" ");
  link.go({ ...state, q });
  $("query").value = q;
}

// pick moves the cursor to a server.
function pick(i, scroll) {
  rack.mark(i ?? -1, scroll);
  announce(rack.picked);
}

function announce(i) {
  const t = rack.tiles[i];
  $("option").textContent = t ? describe(t).join(", ") : "No server";
}

const describe = (t) => [t.name, t.rack && `rack ${t.rack}`, t.power, t.state, t.error, t.role, `health ${t.health}`,
  t.bmc !== "reachable" && `BMC ${t.bmc}`, t.faults > 0 && `${t.faults} ${t.faults > 1 ? "faults" : "fault"}`].filter(Boolean);

const open = (i) => { const t = rack.tiles[i]; if (t) link.go({ ...state, rack: t.rack, server: t.name }); };

$("rack").addEventListener("keydown", (e) => {
  if (e.key === "Enter") { open(rack.picked); return; }
  if (!["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End"].includes(e.key)) return;
  e.preventDefault();
  pick(rack.step(e.key), true);
});

function under(e) {
  const at = $("canvas").getBoundingClientRect();
  return rack.at(e.clientX - at.left, e.clientY - at.top);
}

$("canvas").addEventListener("click", (e) => { const i = under(e); if (i >= 0) { pick(i); open(i); } });
$("canvas").addEventListener("pointermove", (e) => {
  const t = rack.tiles[under(e)], hint = $("hint");
  hint.hidden = !t || e.pointerType === "touch";
  if (hint.hidden) return;
  const [name, ...rest] = describe(t);
  hint.replaceChildren(el("b", { text: name }), rest.join(" · "));
  hint.style.left = `${Math.min(e.clientX + 14, innerWidth - hint.offsetWidth - 8)}px`;
  hint.style.top = `${Math.min(e.clientY + 14, innerHeight - hint.offsetHeight - 8)}px`;
});
$("canvas").addEventListener("pointerleave", () => { $("hint").hidden = true; });

$("colour").addEventListener("change", (e) => link.go({ ...state, colour: e.target.value }));
$("query").addEventListener("input", (e) => link.go({ ...state, q: e.target.value.trim() }, true));
$("tools").addEventListener("submit", (e) => e.preventDefault());

addEventListener("keydown", (e) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName);
  if (e.key === "/" && !typing) { e.preventDefault(); $("query").focus(); }
  if (e.key === "Escape" && !document.querySelector("dialog[open]")) {
    if (typing) document.activeElement.blur();
    else if (state.server) link.go({ ...state, server: null });
  }
});

addEventListener("hashchange", follow);
addEventListener("unhandledrejection", (e) => toast(String(e.reason?.message || e.reason), true));
globalThis.metalab = { stats, rack, counts };
follow();
if (recorded) showRecording();
