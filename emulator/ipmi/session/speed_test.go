package session_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"fmt"
	"hash"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/session"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// ready is a session in use, and packets of it to measure with: copies of one
// request, each with its own number, as many as asked for.
type ready struct {
	*world
	*client
	packets [][]byte
	scratch []byte
	out     []byte
	answer  []byte
}

func newReady(t testing.TB, suite byte, n int) *ready {
	w, c := newWorld(t), newClient(suite, "ADMIN", "ADMIN")
	w.login(c)
	r := &ready{world: w, client: c, scratch: make([]byte, 256), out: make([]byte, 0, 256)}
	r.more(n)
	r.answer = message(7, 1, 1, make([]byte, 16)...)
	return r
}

func (r *ready) more(n int) {
	r.packets = r.packets[:0]
	for range n {
		r.packets = append(r.packets, r.packet(0, r.request(6, 1)))
	}
}

// command takes a packet and wraps an answer.
func (r *ready) command(i int) bool {
	p := r.scratch[:copy(r.scratch, r.packets[i])]
	got := r.table.Receive(r.now, r.from, p, r.out, r.auth)
	if got.Body == nil {
		return false
	}
	if _, again := got.Session.Repeat(got.Body); again {
		return false
	}
	q, err := wire.ParseRequest(got.Body)
	if err != nil {
		return false
	}
	got.Session.Remember(got.Body, r.answer)
	return len(r.table.Wrap(q.AppendResponse(r.out, 0, nil)[:0], got.Frame, wire.PayloadIPMI, r.answer)) > 0
}

// floor is the cryptography of a command on bytes alone: states that are made
// once, no packets, no sessions.
type floor struct {
	mac      hash.Hash
	size     int
	enc, dec cipher.BlockMode
	block    cipher.Block
	b, sum   []byte
}

type vectored interface{ SetIV([]byte) }

func newFloor(suite byte) *floor {
	f := &floor{b: make([]byte, 96), sum: make([]byte, 0, 32), mac: hmac.New(sha1.New, make([]byte, 20)), size: 12}
	if suite == 17 {
		f.mac, f.size = hmac.New(sha256.New, make([]byte, 32)), 16
	}
	var err error
	if f.block, err = aes.NewCipher(make([]byte, 16)); err != nil {
		panic(err)
	}
	iv := make([]byte, 16)
	f.enc, f.dec = cipher.NewCBCEncrypter(f.block, iv), cipher.NewCBCDecrypter(f.block, iv)
	return f
}

// command checks a code over 48 bytes, decrypts 16, encrypts 32 and makes a code
// over 64: what ready's packets are.
func (f *floor) command() {
	f.mac.Reset()
	f.mac.Write(f.b[:48])
	f.sum = f.mac.Sum(f.sum[:0])
	f.dec.(vectored).SetIV(f.b[:16])
	f.dec.CryptBlocks(f.b[16:32], f.b[16:32])
	f.block.Encrypt(f.b[:16], f.b[:16])
	f.enc.(vectored).SetIV(f.b[:16])
	f.enc.CryptBlocks(f.b[16:48], f.b[16:48])
	f.mac.Reset()
	f.mac.Write(f.b[:64])
	f.sum = f.mac.Sum(f.sum[:0])
}

// against measures two things in turns, and reports the ratio.
func against(b *testing.B, chunk int, prepare func(), ours func(i int), floor func(i int)) {
	var us, bare time.Duration
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		prepare()
		b.StartTimer()
		at := b.Elapsed()
		for i := range chunk {
			floor(i)
		}
		mid := b.Elapsed()
		for i := range chunk {
			ours(i)
		}
		us, bare, n = us+b.Elapsed()-mid, bare+mid-at, n+chunk
	}
	b.ReportMetric(float64(us)/float64(n), "ns/each")
	b.ReportMetric(float64(bare)/float64(n), "ns/floor")
	b.ReportMetric(float64(us)/float64(bare), "x-floor")
}

func BenchmarkCommand(b *testing.B) {
	for _, suite := range []byte{3, 17} {
		b.Run(fmt.Sprintf("suite=%d", suite), func(b *testing.B) {
			const chunk = 256
			r, f := newReady(b, suite, chunk), newFloor(suite)
			against(b, chunk, func() { r.more(chunk) }, func(i int) {
				if !r.command(i) {
					b.Fatal("a command was not heard")
				}
			}, func(int) { f.command() })
		})
	}
}

// login is the cryptography of a login on bytes alone: RAKP 2, 3, 4, the
// session's key and the two that are made of it (§13.31, §13.32).
func (f *floor) login(suite byte) {
	newHash := sha1.New
	if suite == 17 {
		newHash = sha256.New
	}
	var key [20]byte
	sum := func(key []byte, n int) []byte {
		h := hmac.New(newHash, key)
		h.Write(f.b[:n])
		return h.Sum(nil)
	}
	sum(key[:], 63)
	sum(key[:], 27)
	sik := sum(key[:], 39)
	sum(sik, 36)
	h := hmac.New(newHash, sik)
	h.Write(key[:])
	k1 := h.Sum(nil)
	h.Reset()
	h.Write(key[:])
	k2 := h.Sum(nil)
	f.mac = hmac.New(newHash, k1)
	block, err := aes.NewCipher(k2[:16])
	if err != nil {
		panic(err)
	}
	f.block = block
}

// BenchmarkLogin is the BMC's part of a session: Open Session, RAKP 1 and 3,
// and its end.
func BenchmarkLogin(b *testing.B) {
	for _, suite := range []byte{3, 17} {
		b.Run(fmt.Sprintf("suite=%d", suite), func(b *testing.B) {
			const chunk = 16
			w, f := newWorld(b), newFloor(suite)
			// The client's part is done before: the table is given the same
			// random numbers again.
			type tape struct {
				random  []byte
				packets [3][]byte
				id      uint32
			}
			tapes := make([]tape, chunk)
			reel := &reel{}
			w.table = session.New(session.Config{Rand: reel})
			out := make([]byte, 0, 256)
			scratch := make([]byte, 256)
			for i := range tapes {
				t := &tapes[i]
				t.random = make([]byte, 20)
				if _, err := seeded(uint64(i + 1)).Read(t.random); err != nil {
					b.Fatal(err)
				}
				reel.b = t.random
				c := newClient(suite, "ADMIN", "ADMIN")
				c.from = netip.AddrPortFrom(c.from.Addr(), uint16(1000+i))
				w.open(c, 0)
				w.identify(c)
				t.packets = [3][]byte{c.openRequest(0), c.rakp1(), c.rakp3()}
				w.prove(c)
				t.id = c.managed
				w.table.Close(t.id)
			}
			from := netip.MustParseAddrPort("127.0.0.1:40000")
			against(b, chunk, func() { w.auth.admitted = w.auth.admitted[:0] }, func(i int) {
				t := &tapes[i]
				reel.b = t.random
				for _, p := range t.packets {
					if w.table.Receive(w.now, from, scratch[:copy(scratch, p)], out, w.auth).Reply == nil {
						b.Fatal("a step was not answered")
					}
				}
				if !w.table.Close(t.id) {
					b.Fatal("no session was opened")
				}
			}, func(int) { f.login(suite) })
		})
	}
}

// reel gives the bytes that are put on it.
type reel struct{ b []byte }

func (r *reel) Read(b []byte) (int, error) {
	n := copy(b, r.b)
	r.b = r.b[n:]
	return n, nil
}

func TestCommandsMakeNoGarbage(t *testing.T) {
	for _, suite := range []byte{1, 2, 3, 12, 17} {
		const runs = 100
		r := newReady(t, suite, runs+20)
		i := 0
		for ; i < 10; i++ {
			r.command(i) // states are kept from the first on
		}
		if n := testing.AllocsPerRun(runs, func() {
			if !r.command(i) {
				t.Fatal("a command was not heard")
			}
			i++
		}); n != 0 {
			t.Errorf("suite %d: %v allocations a command, want 0", suite, n)
		}
	}
}

func TestIdleTablesAreSmall(t *testing.T) {
	const n = 10_000
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	tables := make([]*session.Table, n)
	before := heap()
	for i := range tables {
		tables[i] = session.New(session.Config{})
	}
	if each := (int64(heap()) - int64(before)) / n; each > 200 {
		t.Errorf("a table that was never used has %d bytes, want 200 at most", each)
	}
	runtime.KeepAlive(tables)

	// A table whose sessions have ended is as small.
	w, c := newWorld(t), newClient(17, "ADMIN", "ADMIN")
	tables = tables[:1000]
	before = heap()
	for i := range tables {
		w.table = session.New(session.Config{Rand: seeded(uint64(i))})
		w.login(c)
		w.exchange(c, c.request(6, 1))
		w.open(newClient(3, "", ""), 0)
		w.now = w.now.Add(time.Minute)
		w.table.Advance(w.now)
		tables[i] = w.table
	}
	if each := (int64(heap()) - int64(before)) / int64(len(tables)); each > 300 {
		t.Errorf("a table whose sessions have ended has %d bytes, want 300 at most", each)
	}
	runtime.KeepAlive(tables)
}
