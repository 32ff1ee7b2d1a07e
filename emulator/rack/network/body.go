package network

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
)

// BodyPace is how fast a client must send the body of a request: Bytes in every Per of
// real time, from the end of the headers on. The last bytes have as long. A client that
// is slower is cut: it would hold a connection and a goroutine for as long as it likes.
// An upload of any size may take as long as it needs at that pace.
type BodyPace struct {
	Bytes int64
	Per   time.Duration
}

// DefaultBodyPace is the pace of all servers of a rack: 2 KiB/s. All bodies but images
// have one interval.
var DefaultBodyPace = BodyPace{Bytes: 64 << 10, Per: 30 * time.Second}

// Handler returns a handler that calls next and cuts clients that send the body of a
// request more slowly than p, or than DefaultBodyPace if p is zero. It works on the connection's read deadline: a Read of the
// body returns os.ErrDeadlineExceeded.
func (p BodyPace) Handler(next http.Handler) http.Handler {
	if p == (BodyPace{}) {
		p = DefaultBodyPace
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		b := &pacedBody{ReadCloser: r.Body, conn: http.NewResponseController(w), pace: p}
		b.extend()
		// A copy, as http.MaxBytesHandler makes: net/http looks at the type of the
		// request's own body, to know whether it awaits 100 Continue.
		paced := *r
		paced.Body = b
		next.ServeHTTP(w, &paced)
	})
}

// pacedBody is the body of a request with the deadline of a BodyPace.
type pacedBody struct {
	io.ReadCloser
	conn *http.ResponseController
	pace BodyPace
	left int64 // bytes until the deadline moves
}

// Read implements io.Reader. The deadline ends with the body: the handler may take any
// time after it, and net/http goes on reading, to notice that the client has closed the
// connection.
func (b *pacedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch b.left -= int64(n); {
	case errors.Is(err, io.EOF):
		_ = b.conn.SetReadDeadline(time.Time{}) // as in extend
	case b.left <= 0:
		b.extend()
	}
	return n, err
}

// extend begins the next interval.
func (b *pacedBody) extend() {
	b.left = b.pace.Bytes
	// It fails for a writer that has no connection, such as a recorder's: then there is
	// no client that could be slow.
	_ = b.conn.SetReadDeadline(clock.Wall().Add(b.pace.Per))
}
