// dom.mjs makes elements. Texts are always text nodes: nothing of a lab is HTML.

// el returns an element with attributes, listeners (onclick: function) and children.
export function el(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else if (key === "text") e.textContent = value;
    else e.setAttribute(key, value === true ? "" : value);
  }
  e.append(...some(children));
  return e;
}

// some returns the children that are there: conditions leave out the others.
export const some = (children) => children.flat(Infinity).filter((c) => c !== undefined && c !== null && c !== false && c !== "");

// data returns the JSON that the page was rendered with.
export const data = (id) => JSON.parse(document.getElementById(id).textContent);

const icons = "http://www.w3.org/2000/svg";

// spark returns a sparkline of readings.
export function spark(label) {
  const svg = document.createElementNS(icons, "svg");
  svg.setAttribute("class", "spark");
  svg.setAttribute("viewBox", "0 0 100 20");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
  const line = document.createElementNS(icons, "path");
  svg.append(line);
  return { svg, draw: (all) => line.setAttribute("d", path(all)) };
}

// path returns the path of readings, oldest first, in 100 by 20. A gap is null.
export function path(all) {
  const known = all.filter((r) => r !== null);
  if (!known.length) return "";
  const low = Math.min(...known), high = Math.max(...known), span = high - low || 1;
  const step = 100 / Math.max(all.length - 1, 1);
  let out = "", pen = false;
  all.forEach((r, i) => {
    if (r === null) { pen = false; return; }
    const y = high === low ? 10 : 18 - ((r - low) / span) * 16;
    out += `${pen ? "L" : "M"}${(i * step).toFixed(1)} ${y.toFixed(1)}`;
    if (!pen && (i === all.length - 1 || all[i + 1] === null)) out += "h1";
    pen = true;
  });
  return out;
}

export function bytes(n) {
  if (!n) return "0 B";
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  const i = Math.min(units.length - 1, Math.floor(Math.log10(n) / 3));
  return `${(n / 1000 ** i).toFixed(i && n / 1000 ** i < 10 ? 1 : 0)} ${units[i]}`;
}

// clock returns the time of day of a time, or with the date when it is another day.
export function clock(text, day) {
  const s = String(text);
  return day && s.slice(0, 10) !== day.slice(0, 10) ? `${s.slice(0, 10)} ${s.slice(11, 19)}` : s.slice(11, 19);
}
