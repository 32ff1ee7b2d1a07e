// stream.mjs keeps one stream of server-sent events open. It names the server whose page is
// open, so that the lab sends no more than the page shows.

export class Stream {
  constructor(handlers, status) {
    Object.assign(this, { handlers, status, source: null, now: null, since: "" });
  }

  // open opens the stream for a server, or for none.
  open(server, console) {
    const q = new URLSearchParams();
    if (server) q.set("host", server);
    if (server && console) q.set("console", "1");
    const url = `/events?${q}`;
    if (url === this.now && this.source && this.source.readyState !== EventSource.CLOSED) return;
    this.close();
    this.now = url;
    // The page has the tiles up to the last event of another server's stream.
    const source = (this.source = new EventSource(this.since ? `${url}&since=${encodeURIComponent(this.since)}` : url));
    source.onopen = () => this.status("live");
    source.onerror = () => {
      this.status("connecting");
      if (source.readyState !== EventSource.CLOSED) return; // the browser tries again
      setTimeout(() => { if (this.source === source) { this.now = null; this.open(server, console); } }, 2000);
    };
    for (const [kind, f] of Object.entries(this.handlers)) source.addEventListener(kind, (e) => { this.since = e.lastEventId; f(JSON.parse(e.data)); });
  }

  close() { this.source?.close(); this.source = null; }
}
