// query.mjs reads queries. Terms are separated by spaces and all of them must hold:
// a name with * and ?, FIELD:VALUE (VALUE may have * and ?), and -TERM for its opposite.

const fields = { power: "power", state: "state", role: "role", health: "health", bmc: "bmc", faults: "faults", rack: "rack", profile: "profile", boot: "boot", error: "error", name: "name" };

export const fieldNames = Object.keys(fields);

function glob(pattern, anywhere) {
  const body = pattern.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".");
  const open = anywhere && !/[*?]/.test(pattern);
  return new RegExp(open ? body : `^${body}$`, "i");
}

// parse returns a function that reports whether a tile matches, and the terms that are wrong.
export function parse(text) {
  const wrong = [];
  const terms = (text.match(/-?[\w]+:"[^"]*"|\S+/g) || []).map((term) => {
    const not = term.startsWith("-") && term.length > 1;
    const plain = not ? term.slice(1) : term;
    const colon = plain.indexOf(":");
    if (colon < 0) {
      const re = glob(plain, true);
      return (t) => re.test(t.name) !== not;
    }
    const field = fields[plain.slice(0, colon).toLowerCase()];
    if (!field) { wrong.push(plain.slice(0, colon)); return () => true; }
    const re = glob(plain.slice(colon + 1).replace(/^"|"$/g, ""), false);
    return (t) => re.test(String(t[field] ?? "")) !== not;
  });
  return { matches: (t) => terms.every((f) => f(t)), empty: terms.length === 0, wrong };
}

// term returns the term for a value of a field.
export const term = (field, value) => `${field}:${/\s/.test(value) || value === "" ? `"${value}"` : value}`;
