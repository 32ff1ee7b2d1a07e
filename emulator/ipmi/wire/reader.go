package wire

import "encoding/binary"

// reader reads a message from its beginning. It remembers its first error, and
// returns zeros after it.
type reader struct {
	b   []byte
	err error
}

// bytes returns the next n bytes, which remain part of the message.
func (r *reader) bytes(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.b) {
		r.fail(ErrShort)
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) u8() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if b := r.bytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// be32 reads a big-endian number of RMCP or ASF.
func (r *reader) be32() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) block() (out [16]byte) {
	copy(out[:], r.bytes(len(out)))
	return out
}

func (r *reader) skip(n int) { r.bytes(n) }

// expect reads a byte that must have this value.
func (r *reader) expect(want byte) {
	if got := r.u8(); r.err == nil && got != want {
		r.fail(ErrField)
	}
}

// rest returns all remaining bytes.
func (r *reader) rest() []byte { return r.bytes(len(r.b)) }

// end returns the first error; unread bytes are one.
func (r *reader) end() error {
	if r.err == nil && len(r.b) > 0 {
		r.err = ErrLong
	}
	return r.err
}
