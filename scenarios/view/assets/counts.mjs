// counts.mjs keeps the numbers of servers by value. A change of a tile adds and subtracts one;
// nothing counts all servers.

export class Counts {
  constructor(schemes) {
    this.fields = schemes.map((s) => s.field);
    this.numbers = new Map(this.fields.map((f) => [f, new Map()]));
    this.all = 0;
    this.matched = 0;
    this.fits = new Set(); // indices of the servers that match the query
  }

  of(scheme) { return this.numbers.get(scheme.field); }

  // change takes the tile of a server before and after a change.
  change(was, is, matches) {
    if (!was) this.all++;
    for (const f of this.fields) {
      const now = String(is[f] ?? ""), before = was && String(was[f] ?? "");
      if (before === now) continue;
      const n = this.numbers.get(f);
      if (was) n.set(before, n.get(before) - 1);
      n.set(now, (n.get(now) || 0) + 1);
    }
    this.note(is, matches(is));
  }

  note(t, fits) {
    if (fits) this.fits.add(t.i); else this.fits.delete(t.i);
    this.matched = this.fits.size;
  }

  // match takes another query.
  match(tiles, matches) { for (const t of tiles) if (t) this.note(t, matches(t)); }
}
