// console.mjs shows a serial console as text: it applies carriage returns, backspaces and
// clearing, and leaves out other control sequences (ECMA-48).

const most = 60000; // characters that are shown

export class Console {
  constructor() { this.reset(); }

  reset() { this.text = ""; this.column = null; this.decoder = new TextDecoder(); this.rest = ""; this.next = null; }

  // add takes bytes in base64, and returns the text to show.
  add(at, base64) {
    if (this.next !== null && at < this.next) return this.text; // sent again
    if (this.next === null || at > this.next) this.reset();
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    this.next = at + bytes.length;
    this.print(this.decoder.decode(bytes, { stream: true }));
    return this.text;
  }

  print(more) {
    let s = this.rest + more;
    this.rest = "";
    const cut = s.lastIndexOf("\x1b");
    if (cut >= 0 && s.length - cut < 24 && !/^\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[^[\]])/.test(s.slice(cut))) {
      this.rest = s.slice(cut); // the end of the sequence is still to come
      s = s.slice(0, cut);
    }
    s = s.replace(/\x1b\[[23]?J/g, "\f").replace(/\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[^[\]])/g, "");
    for (const part of s.split(/([\r\n\b\f\x07\0])/)) this.apply(part);
    if (this.text.length > most) this.text = this.text.slice(this.text.indexOf("\n", this.text.length - most) + 1);
  }

  apply(part) {
    const line = this.text.lastIndexOf("\n") + 1;
    switch (part) {
      case "": case "\x07": case "\0": return;
      case "\n": this.text += "\n"; this.column = null; return;
      case "\r": this.column = 0; return;
      case "\b": this.column = Math.max(0, (this.column ?? this.text.length - line) - 1); return;
      case "\f": this.text = ""; this.column = null; return;
    }
    if (this.column === null) { this.text += part; return; }
    const old = this.text.slice(line);
    this.text = this.text.slice(0, line) + old.slice(0, this.column) + part + old.slice(this.column + part.length);
    this.column += part.length;
    if (this.column >= this.text.length - line) this.column = null;
  }
}
