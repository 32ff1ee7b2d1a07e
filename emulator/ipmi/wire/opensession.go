package wire

import "encoding/binary"

// AlgorithmKind is the payload type of an algorithm proposal.
type AlgorithmKind byte

// The kinds of algorithms.
const (
	KindAuthentication  AlgorithmKind = 0
	KindIntegrity       AlgorithmKind = 1
	KindConfidentiality AlgorithmKind = 2
)

// Proposal is one algorithm that a client proposes or leaves to the BMC.
type Proposal struct {
	Kind      AlgorithmKind
	Any       bool // the BMC chooses
	Algorithm byte
}

// OpenRequest is an RMCP+ Open Session Request (§13.17).
type OpenRequest struct {
	Tag       byte
	Privilege Privilege // 0: the highest level that the algorithms allow
	Console   uint32    // remote console session ID
	Proposals []Proposal
}

const (
	errorSize    = 8 // length of a response whose status is not StatusOK
	proposalSize = 8
	// maxProposals is more than the number of algorithms.
	maxProposals = 32
)

// RequestHead is the beginning of every handshake request: enough to answer a
// request that is malformed after it.
type RequestHead struct {
	Tag, Second byte
	Session     uint32
}

// ParseHead parses the beginning of a handshake request.
func ParseHead(b []byte) (h RequestHead, err error) {
	r := reader{b: b}
	h.Tag, h.Second = r.u8(), r.u8()
	r.skip(2)
	h.Session = r.u32()
	if r.err != nil {
		return RequestHead{}, wrong("head of a handshake's message", r.err)
	}
	return h, nil
}

// AppendBinary appends the front.
func (h RequestHead) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, h.Tag, h.Second, 0, 0)
	return binary.LittleEndian.AppendUint32(b, h.Session), nil
}

// ParseOpenRequest parses the body of a packet.
func ParseOpenRequest(b []byte) (q OpenRequest, err error) {
	r := reader{b: b}
	q.Tag, q.Privilege = r.u8(), Privilege(r.u8()&0x0f)
	r.skip(2)
	q.Console = r.u32()
	for len(r.b) > 0 && r.err == nil {
		if len(q.Proposals) == maxProposals {
			r.fail(ErrLong)
			break
		}
		q.Proposals = append(q.Proposals, r.proposal())
	}
	if err := r.end(); err != nil {
		return OpenRequest{}, wrong("Open Session Request", err)
	}
	return q, nil
}

func (r *reader) proposal() (p Proposal) {
	p.Kind = AlgorithmKind(r.u8())
	r.skip(2)
	switch r.u8() {
	case 0:
		p.Any = true
		r.skip(4)
	case proposalSize:
		p.Algorithm = r.u8() & 0x3f
		r.skip(3)
	default:
		r.fail(ErrField)
	}
	return p
}

func (p Proposal) append(b []byte) []byte {
	if p.Any {
		return append(b, byte(p.Kind), 0, 0, 0, 0, 0, 0, 0)
	}
	return append(b, byte(p.Kind), 0, 0, proposalSize, p.Algorithm&0x3f, 0, 0, 0)
}

// AppendBinary appends the message.
func (q OpenRequest) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, q.Tag, byte(q.Privilege)&0x0f, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, q.Console)
	for _, p := range q.Proposals {
		b = p.append(b)
	}
	return b, nil
}

// OpenResponse is an RMCP+ Open Session Response (§13.18). Unless Status is
// StatusOK, only Tag, Status and Console are sent.
type OpenResponse struct {
	Tag       byte
	Status    Status
	Privilege Privilege // maximum privilege level of the session
	Console   uint32
	BMC       uint32 // managed system session ID
	Suite     Suite
}

// AppendBinary appends the message.
func (a OpenResponse) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, a.Tag, byte(a.Status), byte(a.Privilege)&0x0f, 0)
	b = binary.LittleEndian.AppendUint32(b, a.Console)
	if a.Status != StatusOK {
		return b, nil
	}
	b = binary.LittleEndian.AppendUint32(b, a.BMC)
	b = Proposal{Kind: KindAuthentication, Algorithm: byte(a.Suite.Authentication)}.append(b)
	b = Proposal{Kind: KindIntegrity, Algorithm: byte(a.Suite.Integrity)}.append(b)
	return Proposal{Kind: KindConfidentiality, Algorithm: byte(a.Suite.Confidentiality)}.append(b), nil
}
