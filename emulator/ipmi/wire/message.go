package wire

// Request is an IPMI request message (§13.8). LUNs have 2 bits, sequence
// numbers 6.
type Request struct {
	To      byte // slave address (even) or software ID (odd)
	ToLUN   byte
	NetFn   NetFn
	From    byte
	FromLUN byte
	Seq     byte
	Cmd     byte
	Data    []byte
}

// ParseRequest parses a message and checks its two checksums. Data is a part of
// b. A response is an error.
func ParseRequest(b []byte) (q Request, err error) {
	r := message(b)
	q.To = r.u8()
	q.NetFn, q.ToLUN = r.function()
	r.skip(1)
	q.From = r.u8()
	q.Seq, q.FromLUN = r.sequence()
	q.Cmd, q.Data = r.u8(), r.rest()
	if r.err == nil && q.NetFn.IsResponse() {
		r.fail(ErrField)
	}
	if r.err != nil {
		return Request{}, wrong("request", r.err)
	}
	return q, nil
}

// AppendBinary appends the message.
func (q Request) AppendBinary(b []byte) ([]byte, error) {
	from := len(b)
	b = append(b, q.To, byte(q.NetFn)<<2|q.ToLUN&3)
	b = append(b, Checksum(b[from:]), q.From, q.Seq<<2|q.FromLUN&3, q.Cmd)
	b = append(b, q.Data...)
	return append(b, Checksum(b[from+3:])), nil
}

// AppendResponse appends the response with a completion code and data:
// addresses and LUNs are exchanged, and the network function is one higher.
func (q Request) AppendResponse(b []byte, code byte, data []byte) []byte {
	from := len(b)
	b = append(b, q.From, byte(q.NetFn|1)<<2|q.FromLUN&3)
	b = append(b, Checksum(b[from:]), q.To, q.Seq<<2|q.ToLUN&3, q.Cmd, code)
	b = append(b, data...)
	return append(b, Checksum(b[from+3:]))
}

// Response is an IPMI response message.
type Response struct {
	To      byte // the requester
	ToLUN   byte
	NetFn   NetFn // odd
	From    byte
	FromLUN byte
	Seq     byte
	Cmd     byte
	Code    byte // completion code
	Data    []byte
}

// AppendBinary appends the message.
func (a Response) AppendBinary(b []byte) ([]byte, error) {
	from := len(b)
	b = append(b, a.To, byte(a.NetFn)<<2|a.ToLUN&3)
	b = append(b, Checksum(b[from:]), a.From, a.Seq<<2|a.FromLUN&3, a.Cmd, a.Code)
	b = append(b, a.Data...)
	return append(b, Checksum(b[from+3:])), nil
}

// message returns a reader of a message without its second checksum; it has
// failed when a checksum is wrong.
func message(b []byte) reader {
	const least = 7 // two addresses, two network functions, two checksums and the command
	r := reader{b: b}
	switch {
	case len(b) < least:
		r.fail(ErrShort)
	case Checksum(b[:3]) != 0 || Checksum(b[3:]) != 0:
		r.fail(ErrChecksum)
	default:
		r.b = b[:len(b)-1]
	}
	return r
}

func (r *reader) function() (f NetFn, lun byte) {
	b := r.u8()
	return NetFn(b >> 2), b & 3
}

func (r *reader) sequence() (seq, lun byte) {
	b := r.u8()
	return b >> 2, b & 3
}

// Checksum returns the byte that makes the sum of all bytes 0; it is 0 for
// bytes that end with their checksum.
func Checksum(b []byte) byte {
	var sum byte
	for _, c := range b {
		sum += c
	}
	return -sum
}
