package vm

import (
	"bufio"
	"errors"
	"io"
)

// Delimiters of QEMU's ipmi-bmc-extern protocol. A data byte equal to one of
// them is sent as escape and the byte with bit 4 set.
const (
	endMessage = 0xa0
	endCommand = 0xa1
	escape     = 0xaa
	escapeBit  = 0x10
)

// maxFrame bounds a frame in bytes; no IPMI message is longer.
const maxFrame = 300

// frame is one message or command of the stream.
type frame struct {
	end  byte // delimiter: endMessage or endCommand
	body []byte
}

// errFrame means that a frame is malformed; the next one may be valid.
var errFrame = errors.New("vm: frame: too long, or it ends in an escape")

// readFrame reads the next frame. Its body is valid until the next call.
func readFrame(r *bufio.Reader, buf []byte) (frame, error) {
	out, escaped, long := buf[:0], false, false
	for {
		b, err := r.ReadByte()
		switch {
		case err != nil:
			if errors.Is(err, io.EOF) && len(out) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return frame{}, err
		case b == endMessage || b == endCommand:
			if escaped || long {
				return frame{}, errFrame
			}
			return frame{b, out}, nil
		case b == escape:
			escaped = true
			continue
		case escaped:
			b &^= escapeBit
			escaped = false
		}
		if long = long || len(out) >= maxFrame; !long {
			out = append(out, b)
		}
	}
}

// appendFrame appends a frame.
func appendFrame(out []byte, end byte, body ...byte) []byte {
	for _, b := range body {
		if b == endMessage || b == endCommand || b == escape {
			out = append(out, escape)
			b |= escapeBit
		}
		out = append(out, b)
	}
	return append(out, end)
}

// checksum returns the byte that makes the sum of all bytes zero.
func checksum(b []byte) byte {
	var sum byte
	for _, x := range b {
		sum += x
	}
	return -sum
}
