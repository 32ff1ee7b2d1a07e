// link.mjs is the state of the page in its link: #/rack/RACK/SERVER?tab=&q=&colour=

const none = "-"; // the rack of servers that stand in none

export function read() {
  const hash = decodeFragment(location.hash.replace(/^#\/?/, ""));
  const [where, query = ""] = split(hash, "?");
  const parts = where.split("/").filter(Boolean).map(decodeURIComponent);
  const q = new URLSearchParams(query);
  return {
    rack: parts[0] === "rack" ? rackOf(parts[1]) : null,
    server: parts[0] === "rack" ? parts[2] || null : null,
    tab: q.get("tab") || "summary", q: q.get("q") || "", at: q.get("at") || "", colour: q.get("colour") || "power",
  };
}

const rackOf = (part) => (part === undefined ? null : part === none ? "" : part);

function decodeFragment(text) { try { decodeURIComponent(text); return text; } catch { return ""; } }

function split(text, at) { const i = text.indexOf(at); return i < 0 ? [text] : [text.slice(0, i), text.slice(i + 1)]; }

export function write(state) {
  const q = new URLSearchParams();
  if (state.server && state.tab && state.tab !== "summary") q.set("tab", state.tab);
  if (state.q) q.set("q", state.q);
  if (state.colour && state.colour !== "power") q.set("colour", state.colour);
  let out = "#/";
  if (state.rack !== null && state.rack !== undefined) out += `rack/${encodeURIComponent(state.rack || none)}`;
  if (state.server) out += `/${encodeURIComponent(state.server)}`;
  if (state.at) q.set("at", state.at);
  const query = q.toString();
  return query ? `${out}?${query}` : out;
}

// go follows a link to a state. replace leaves no entry in the history.
export function go(state, replace) {
  const to = write(state);
  if (to === location.hash) return;
  if (!replace) { location.hash = to; return; }
  history.replaceState(null, "", to);
  dispatchEvent(new HashChangeEvent("hashchange"));
}
