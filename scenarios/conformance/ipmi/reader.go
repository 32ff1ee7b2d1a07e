package ipmi

import (
	"encoding/binary"
	"fmt"
)

// reader reads the bytes of a packet in order. After its first failure it
// returns zeros.
type reader struct {
	b   []byte
	err error
}

func (r *reader) bytes(n int) []byte {
	if r.err == nil && len(r.b) < n {
		r.err = fmt.Errorf("%w: %d bytes are missing", ErrMalformed, n-len(r.b))
	}
	if r.err != nil {
		return make([]byte, n)
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) u8() byte    { return r.bytes(1)[0] }
func (r *reader) u16() uint16 { return binary.LittleEndian.Uint16(r.bytes(2)) }
func (r *reader) u32() uint32 { return binary.LittleEndian.Uint32(r.bytes(4)) }

// rest returns all unread bytes.
func (r *reader) rest() []byte {
	out := r.b
	r.b = nil
	return out
}

// end returns the reader's failure. Unread bytes are one.
func (r *reader) end() error {
	if r.err == nil && len(r.b) > 0 {
		r.err = fmt.Errorf("%w: %d bytes too many", ErrMalformed, len(r.b))
	}
	return r.err
}
