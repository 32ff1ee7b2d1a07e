package wire

import "encoding/binary"

// MaxName is the longest user name in bytes.
const MaxName = 16

// nameOnly is the role bit that asks for a lookup by name alone.
const nameOnly = 0x10

// RAKP1 is RAKP Message 1 (§13.20).
type RAKP1 struct {
	Tag     byte
	Session uint32 // managed system session ID
	Random  [16]byte
	Role    byte // as sent, because the codes cover it
	Name    []byte
}

// Privilege returns the requested maximum privilege level.
func (m RAKP1) Privilege() Privilege { return Privilege(m.Role & 0x0f) }

// ByName reports whether the user is looked up by name alone, rather than by
// name and privilege level.
func (m RAKP1) ByName() bool { return m.Role&nameOnly != 0 }

// ErrName means that a user name is too long.
var ErrName = wrong("RAKP 1: name", ErrLong)

// ParseRAKP1 parses the body of a packet. Name is a part of b. Bytes after the
// name are accepted: some clients always send 16.
func ParseRAKP1(b []byte) (m RAKP1, err error) {
	r := reader{b: b}
	m.Tag = r.u8()
	r.skip(3)
	m.Session, m.Random, m.Role = r.u32(), r.block(), r.u8()
	r.skip(2)
	n := int(r.u8())
	if r.err == nil && n > MaxName {
		return RAKP1{}, ErrName
	}
	m.Name = r.bytes(n)
	if len(r.b) > MaxName-n {
		r.fail(ErrLong)
	}
	if r.err != nil {
		return RAKP1{}, wrong("RAKP 1", r.err)
	}
	return m, nil
}

// AppendBinary appends the message.
func (m RAKP1) AppendBinary(b []byte) ([]byte, error) {
	if len(m.Name) > MaxName {
		return b, ErrName
	}
	b = append(b, m.Tag, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, m.Session)
	b = append(b, m.Random[:]...)
	b = append(b, m.Role, 0, 0, byte(len(m.Name)))
	return append(b, m.Name...), nil
}

// RAKP2 is RAKP Message 2 (§13.21). Unless Status is StatusOK, only Tag,
// Status and Console are sent.
type RAKP2 struct {
	Tag     byte
	Status  Status
	Console uint32 // remote console session ID; 0 when unknown
	Random  [16]byte
	GUID    [16]byte
	Code    []byte // its length depends on the algorithm
}

// AppendBinary appends the message.
func (m RAKP2) AppendBinary(b []byte) ([]byte, error) {
	b = appendHead(b, m.Tag, m.Status, m.Console)
	if m.Status != StatusOK {
		return b, nil
	}
	b = append(append(b, m.Random[:]...), m.GUID[:]...)
	return append(b, m.Code...), nil
}

// RAKP3 is RAKP Message 3 (§13.22). A Status other than StatusOK aborts the
// handshake.
type RAKP3 struct {
	Tag     byte
	Status  Status
	Session uint32 // managed system session ID
	Code    []byte
}

// ParseRAKP3 parses the body of a packet. Code is a part of b.
func ParseRAKP3(b []byte) (m RAKP3, err error) {
	r := reader{b: b}
	m.Tag, m.Status, m.Session = r.head()
	m.Code = r.rest()
	if err := r.end(); err != nil {
		return RAKP3{}, wrong("RAKP 3", err)
	}
	return m, nil
}

// AppendBinary appends the message.
func (m RAKP3) AppendBinary(b []byte) ([]byte, error) {
	return append(appendHead(b, m.Tag, m.Status, m.Session), m.Code...), nil
}

// RAKP4 is RAKP Message 4 (§13.23). Unless Status is StatusOK, only Tag,
// Status and Console are sent.
type RAKP4 struct {
	Tag     byte
	Status  Status
	Console uint32
	Code    []byte
}

// AppendBinary appends the message.
func (m RAKP4) AppendBinary(b []byte) ([]byte, error) {
	b = appendHead(b, m.Tag, m.Status, m.Console)
	if m.Status != StatusOK {
		return b, nil
	}
	return append(b, m.Code...), nil
}

func (r *reader) head() (tag byte, s Status, session uint32) {
	tag, s = r.u8(), Status(r.u8())
	r.skip(2)
	return tag, s, r.u32()
}

func appendHead(b []byte, tag byte, s Status, session uint32) []byte {
	return binary.LittleEndian.AppendUint32(append(b, tag, byte(s), 0, 0), session)
}
