package wire

// What a client parses: tests read the responses of BMCs with it.

// ParsePong parses the data of an ASF message.
func ParsePong(b []byte) (Pong, error) {
	r := reader{b: b}
	p := Pong{Tag: r.asf(asfPong, pongSize), Enterprise: r.be32(), OEM: r.be32(), Entities: r.u8(), Interactions: r.u8()}
	r.skip(6) // reserved
	if err := r.end(); err != nil {
		return Pong{}, wrong("ASF pong", err)
	}
	return p, nil
}

// ParseResponse parses a message and checks its two checksums. Data is a part
// of b.
func ParseResponse(b []byte) (a Response, err error) {
	r := message(b)
	a.To = r.u8()
	a.NetFn, a.ToLUN = r.function()
	r.skip(1)
	a.From = r.u8()
	a.Seq, a.FromLUN = r.sequence()
	a.Cmd, a.Code, a.Data = r.u8(), r.u8(), r.rest()
	if r.err == nil && !a.NetFn.IsResponse() {
		r.fail(ErrField)
	}
	if r.err != nil {
		return Response{}, wrong("response", r.err)
	}
	return a, nil
}

// ParseOpenResponse parses the body of a packet.
func ParseOpenResponse(b []byte) (a OpenResponse, err error) {
	r := reader{b: b}
	a.Tag, a.Status, a.Privilege = r.u8(), Status(r.u8()), Privilege(r.u8()&0x0f)
	r.skip(1)
	a.Console = r.u32()
	if a.Status == StatusOK {
		a.BMC = r.u32()
		a.Suite.Authentication = Authentication(r.chosen(KindAuthentication))
		a.Suite.Integrity = Integrity(r.chosen(KindIntegrity))
		a.Suite.Confidentiality = Confidentiality(r.chosen(KindConfidentiality))
	}
	if err := r.end(); err != nil {
		return OpenResponse{}, wrong("Open Session Response", err)
	}
	return a, nil
}

func (r *reader) chosen(k AlgorithmKind) byte {
	p := r.proposal()
	if p.Kind != k || p.Any {
		r.fail(ErrField)
	}
	return p.Algorithm
}

// ParseRAKP2 parses the body of a packet. Code is a part of b.
func ParseRAKP2(b []byte) (m RAKP2, err error) {
	r := reader{b: b}
	m.Tag, m.Status, m.Console = r.head()
	if m.Status == StatusOK {
		m.Random, m.GUID, m.Code = r.block(), r.block(), r.rest()
	}
	if err := r.end(); err != nil {
		return RAKP2{}, wrong("RAKP 2", err)
	}
	return m, nil
}

// ParseRAKP4 parses the body of a packet. Code is a part of b.
func ParseRAKP4(b []byte) (m RAKP4, err error) {
	r := reader{b: b}
	m.Tag, m.Status, m.Console = r.head()
	if m.Status == StatusOK {
		m.Code = r.rest()
	}
	if err := r.end(); err != nil {
		return RAKP4{}, wrong("RAKP 4", err)
	}
	return m, nil
}
