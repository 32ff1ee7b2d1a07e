package ipmi

import (
	"net/netip"
	"slices"

	"github.com/metalab-dev/metalab/emulator/ipmi/session"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// Channels (§6.3). The one that LAN is on has a number of its own, too.
const (
	lanChannel       = 1
	presentInterface = 0x0e // that the request came on
)

// onLAN says whether a channel number means the LAN channel.
func onLAN(channel byte) bool { return channel == lanChannel || channel == presentInterface }

// sessionCommands are how a client comes to a session, and what it can ask of
// sessions. Those that no session is needed for answer in one as well.
var sessionCommands = []command{
	{fn: wire.App, cmd: 0x37, name: "Get System GUID", run: getSystemGUID},
	{fn: wire.App, cmd: 0x38, name: "Get Channel Authentication Capabilities", least: 2, most: 2, run: getAuthCapabilities},
	{fn: wire.App, cmd: 0x39, name: "Get Session Challenge", least: 17, most: 17, run: getSessionChallenge},
	{fn: wire.App, cmd: 0x3a, name: "Activate Session", least: 22, most: 22, run: activateSession},
	{fn: wire.App, cmd: 0x54, name: "Get Channel Cipher Suites", least: 3, most: 3, run: getCipherSuites},
	{fn: wire.App, cmd: 0x3b, name: "Set Session Privilege Level", privilege: wire.User, least: 1, most: 1, run: setSessionPrivilege},
	{fn: wire.App, cmd: 0x3c, name: "Close Session", privilege: wire.Callback, least: 4, most: 5, run: closeSession},
	{fn: wire.App, cmd: 0x3d, name: "Get Session Info", privilege: wire.User, least: 1, most: 5, run: getSessionInfo},
}

// getSystemGUID is §22.14.
func getSystemGUID(x *request) error {
	g := x.state.auth.GUID()
	x.put(g[:]...)
	return nil
}

// getAuthCapabilities is §22.13.
func getAuthCapabilities(x *request) error {
	channel, asked := x.data[0]&0x0f, wire.Privilege(x.data[1]&0x0f)
	if !onLAN(channel) || asked < wire.Callback || asked > wire.OEMPrivilege {
		return InvalidDataField
	}
	r := x.state.auth
	extended := x.data[0]&0x80 != 0 // who asks so is told of IPMI 2.0, and of its key
	var status byte
	if extended && r.KG() != nil {
		status |= 1 << 5
	}
	for _, a := range x.host.Accounts() {
		if _, ok := r.account(a.ID); !ok {
			continue
		}
		switch {
		case x.host.Dialect().IPMI.Faults.AuthCap: // it says that there are none
		case a.Name != "":
			status |= 1 << 2 // there are users with names
		case a.Password != "":
			status |= 1 << 1 // one without
		default:
			status |= 1 << 0 // one without name and password
		}
	}
	types := byte(r.AuthTypes(asked))
	if asked > r.Limit() {
		types = 0
	}
	versions := byte(0)
	if extended {
		types |= 0x80
		versions = 1 << 1
		if r.AuthTypes(0) != 0 {
			versions |= 1 << 0
		}
	}
	x.put(lanChannel, types, status, versions, 0, 0, 0, 0)
	return nil
}

// algorithms are those of a cipher suite (table 22-20), with their tags.
func algorithms(id byte) []byte {
	s, ok := wire.Suites[id]
	if !ok {
		return nil
	}
	return []byte{byte(s.Authentication), 0x40 | byte(s.Integrity), 0x80 | byte(s.Confidentiality)}
}

// getCipherSuites is §22.15: slices of 16 bytes of a list that is as long as there
// are suites.
func getCipherSuites(x *request) error {
	channel, payload, index := x.data[0]&0x0f, x.data[1]&0x3f, int(x.data[2]&0x3f)
	if !onLAN(channel) || payload > 1 {
		return InvalidDataField
	}
	is := &x.host.Dialect().IPMI
	if x.noResponse = is.NoSuiteList; x.noResponse {
		return nil
	}
	var all []byte
	bySuite := x.data[2]&0x80 != 0
	suites := is.AdvertisedSuites
	if len(suites) == 0 {
		for _, s := range x.state.auth.Suites() {
			suites = append(suites, s.ID)
		}
	}
	for _, id := range suites {
		if bySuite {
			all = append(all, 0xc0, id)
		}
		for _, a := range algorithms(id) {
			if !bySuite && slices.Contains(all, a) {
				continue
			}
			all = append(all, a)
		}
	}
	from := min(index*16, len(all))
	x.put(lanChannel)
	x.put(all[from:min(from+16, len(all))]...)
	return nil
}

// getSessionChallenge is §22.16, and activate §22.17: the two steps of IPMI 1.5.
func getSessionChallenge(x *request) error {
	id, words, code := x.state.table.Challenge(x.now, x.from, x.data[0]&0x0f, x.data[1:17], x.state.auth)
	if code != 0 {
		return Code(code)
	}
	x.put32(id)
	x.put(words[:]...)
	return nil
}

func activateSession(x *request) error {
	a, code := x.state.table.Activate(x.now, x.from, x.session, x.data, x.state.auth)
	if code != 0 {
		return Code(code)
	}
	x.put(a.Auth)
	x.put32(a.ID)
	x.put32(a.Sequence)
	x.put(byte(a.Limit))
	return nil
}

// setSessionPrivilege is §22.18.
func setSessionPrivilege(x *request) error {
	asked := wire.Privilege(x.data[0] & 0x0f)
	switch {
	case asked == 0: // a question
	case asked == wire.Callback || asked > wire.OEMPrivilege:
		return InvalidDataField
	case asked == wire.OEMPrivilege && x.session.User.Limit < asked:
		return Code(0x80) // no user here has it
	case asked > min(x.session.User.Limit, x.session.Limit):
		return Code(0x81) // over the limit of user, channel or handshake
	default:
		x.session.Privilege = asked
	}
	x.put(byte(x.session.Privilege))
	return nil
}

// closeSession is §22.19. Zero and a handle names a session as well.
func closeSession(x *request) error {
	id := le32(x.data)
	var s *session.Session
	if id == 0 {
		if len(x.data) < 5 {
			return Code(0x87)
		}
		if s = x.state.byHandle(x.data[4]); s == nil {
			return Code(0x88)
		}
	} else if s = x.state.table.Find(id); s == nil {
		return Code(0x87)
	}
	if s != x.session && x.session.Privilege < wire.Administrator {
		return InsufficientPrivilege
	}
	side, end := x.state, s.ID
	if s != x.session {
		side.table.Close(end)
		return nil
	}
	x.after = func() { side.table.Close(end) } // the answer is still its own
	return nil
}

func (st *bmcState) byHandle(handle byte) *session.Session {
	for s := range st.table.All() {
		if s.Handle == handle {
			return s
		}
	}
	return nil
}

// getSessionInfo is §22.20.
func getSessionInfo(x *request) error {
	var s *session.Session
	n, active := 0, 0
	index, most := x.data[0], x.state.table.Most()
	for o := range x.state.table.All() {
		active++
		n++
		if n == int(index) {
			s = o
		}
	}
	switch {
	case index == 0:
		s = x.session
	case index == 0xfe && len(x.data) >= 2:
		s = x.state.byHandle(x.data[1])
	case index == 0xff && len(x.data) >= 5:
		s = x.state.table.Find(le32(x.data[1:]))
	case index >= 0xfe:
		return DataLengthInvalid
	}
	if s == nil {
		if index >= 0xfe {
			return NotPresent
		}
		x.put(0, most, min(byte(active), most))
		return nil
	}
	version := byte(1) // IPMI 2.0
	if s.V15 {
		version = 0
	}
	x.put(s.Handle, most, min(byte(active), most), s.User.ID, byte(s.Privilege), version<<4|lanChannel)
	addr := s.From.Addr().Unmap()
	if !addr.Is4() {
		addr = netip.IPv4Unspecified()
	}
	ip := addr.As4()
	x.put(ip[:]...)
	x.put(0, 0, 0, 0, 0, 0) // a MAC address, which loopback has none of
	x.put16(s.From.Port())
	return nil
}
