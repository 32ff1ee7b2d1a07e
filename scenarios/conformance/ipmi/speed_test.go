package ipmi

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	simipmi "github.com/metalab-dev/metalab/emulator/ipmi"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// metered is a socket that tells how much processor time the goroutine that
// receives on it has taken: what happens elsewhere, in clients above all, does
// not count. Whatever it is bound to, it is the BMC's.
type metered struct {
	*net.UDPConn
	at   netip.AddrPort
	once sync.Once
	used atomic.Int64 // ns, until the last Receive
}

func newMetered(b *testing.B) *metered {
	b.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		b.Fatal(err)
	}
	if err := c.SetReadBuffer(4 << 20); err != nil {
		b.Fatal(err)
	}
	return &metered{UDPConn: c, at: c.LocalAddr().(*net.UDPAddr).AddrPort()}
}

func (m *metered) Receive(p []byte) (int, netip.AddrPort, netip.AddrPort, error) {
	m.once.Do(runtime.LockOSThread)
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0, netip.AddrPort{}, m.at, err
	}
	m.used.Store(ts.Nano())
	n, from, err := m.ReadFromUDPAddrPort(p)
	return n, from, m.at, err
}

func (m *metered) Send(p []byte, to, _ netip.AddrPort) error {
	_, err := m.WriteToUDPAddrPort(p, to)
	return err
}

// alone is a rack of one BMC, wherever it is reached.
type alone struct{ *rack.Host }

func (a alone) IPMIAt(netip.AddrPort) (simipmi.Host, bool) { return a.Host, true }

// echo is the floor: it checks the code of a datagram, decrypts, encrypts and
// signs it, and sends it back.
func echo(m *metered) {
	key, buf := make([]byte, 20), make([]byte, 2048)
	block, err := aes.NewCipher(key[:16])
	if err != nil {
		panic(err)
	}
	mac := hmac.New(sha256.New, key)
	iv, sum := make([]byte, aes.BlockSize), make([]byte, 0, sha256.Size)
	for {
		n, from, _, err := m.Receive(buf)
		if err != nil {
			return
		}
		body := buf[16:48] // encrypted payload of a command without data
		mac.Reset()
		mac.Write(buf[4 : n-16])
		sum = mac.Sum(sum[:0])
		cipher.NewCBCDecrypter(block, iv).CryptBlocks(body, body)
		cipher.NewCBCEncrypter(block, iv).CryptBlocks(body, body)
		mac.Reset()
		mac.Write(buf[4 : n-16])
		copy(buf[n-16:n], mac.Sum(sum[:0]))
		if m.Send(buf[:n], from, m.at) != nil {
			return
		}
	}
}

// BenchmarkFloor compares the service with an echo that does the same
// cryptography, in turns within one run: of-floor is how much processor time
// the service takes for each that the echo does.
func BenchmarkFloor(b *testing.B) {
	l := racktest.Start(b, rack.Config{})
	name, password := l.Credentials(l.First())
	ours, floor := newMetered(b), newMetered(b)
	s, err := simipmi.New(simipmi.Config{Rack: alone{l.First()}})
	if err != nil {
		b.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Serve(ours); err != nil {
			b.Error(err)
		}
	})
	serving.Go(func() { echo(floor) })
	defer func() {
		ours.Close()
		floor.Close()
		serving.Wait()
		s.Wait()
	}()
	const clients, rounds = 64, 100
	login := func(ctx context.Context, suite byte) (*Conn, *Session, error) {
		c, err := Dial(ctx, ours.at.String())
		if err != nil {
			return nil, nil, err
		}
		session, err := c.Login(ctx, Login{Name: name, Password: password, Suite: suite})
		return c, session, err
	}
	// each calls do of every client at the same time, n times, and tells the
	// processor time that each call took of who serves m.
	each := func(b *testing.B, m *metered, n int, do func(i int) error) time.Duration {
		before := m.used.Load()
		var all sync.WaitGroup
		for i := range clients {
			all.Go(func() {
				for range n {
					if err := do(i); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		return time.Duration(m.used.Load()-before) / time.Duration(clients*n)
	}
	for _, suite := range []byte{3, 17} {
		b.Run(fmt.Sprintf("command/suite-%d", suite), func(b *testing.B) {
			ctx := b.Context()
			var sessions [clients]*Session
			var plain [clients]net.Conn
			for i := range clients {
				c, session, err := login(ctx, suite)
				if err != nil {
					b.Fatal(err)
				}
				defer c.Close()
				defer session.Close(context.WithoutCancel(ctx))
				sessions[i] = session
				if plain[i], err = net.Dial("udp4", floor.at.String()); err != nil {
					b.Fatal(err)
				}
				defer plain[i].Close()
			}
			var took, least time.Duration
			for b.Loop() {
				took += each(b, ours, rounds, func(i int) error {
					_, err := sessions[i].Do(ctx, GetSystemGUID)
					return err
				})
				least += each(b, floor, rounds, func(i int) error {
					packet := make([]byte, 80)
					if _, err := plain[i].Write(packet); err != nil {
						return err
					}
					_, err := plain[i].Read(packet)
					return err
				})
			}
			report(b, took, least)
		})
	}
	b.Run("session", func(b *testing.B) {
		ctx := b.Context()
		var took, least time.Duration
		var plain [clients]net.Conn
		for i := range clients {
			var err error
			if plain[i], err = net.Dial("udp4", floor.at.String()); err != nil {
				b.Fatal(err)
			}
			defer plain[i].Close()
		}
		for b.Loop() {
			took += each(b, ours, 20, func(int) error {
				c, session, err := login(ctx, 17)
				if err != nil {
					return err
				}
				defer c.Close()
				if _, err := session.Raise(ctx, Administrator); err != nil {
					return err
				}
				return session.Close(ctx)
			})
			least += each(b, floor, 20, func(i int) error {
				for range 5 { // Open Session, RAKP 1, RAKP 3, two commands
					packet := make([]byte, 80)
					if _, err := plain[i].Write(packet); err != nil {
						return err
					}
					if _, err := plain[i].Read(packet); err != nil {
						return err
					}
				}
				return nil
			})
		}
		report(b, took, least)
	})
}

// report tells how much processor time one of what was measured takes, and what
// that is of the floor's.
func report(b *testing.B, took, least time.Duration) {
	b.ReportMetric(float64(took.Microseconds())/float64(b.N), "µs-cpu")
	b.ReportMetric(float64(took)/float64(least), "of-floor")
	b.ReportMetric(0, "ns/op")
}
