package command

import (
	"net/netip"
	"slices"

	"github.com/metalab-dev/metalab/emulator/ipmi/session"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// Channel numbers (§6.3). The LAN channel can also be named as the present
// interface.
const (
	lanChannel       = 1
	presentInterface = 0x0e // the channel that the request came on
)

// onLAN reports whether a channel field means the LAN channel.
func onLAN(channel byte) bool { return channel == lanChannel || channel == presentInterface }

// sessionCommands are the commands that set up, query and close sessions. Those
// that need no session are also answered within one.
var sessionCommands = []Row{
	{fn: wire.App, cmd: 0x37, name: "Get System GUID", run: getSystemGUID},
	{fn: wire.App, cmd: 0x38, name: "Get Channel Authentication Capabilities", least: 2, most: 2, run: getAuthCapabilities},
	{fn: wire.App, cmd: 0x39, name: "Get Session Challenge", least: 17, most: 17, run: getSessionChallenge},
	{fn: wire.App, cmd: 0x3a, name: "Activate Session", least: 22, most: 22, run: activateSession},
	{fn: wire.App, cmd: 0x54, name: "Get Channel Cipher Suites", least: 3, most: 3, run: getCipherSuites},
	{fn: wire.App, cmd: 0x3b, name: "Set Session Privilege Level", privilege: wire.User, least: 1, most: 1, run: setSessionPrivilege},
	{fn: wire.App, cmd: 0x3c, name: "Close Session", privilege: wire.Callback, least: 4, most: 5, run: closeSession},
	{fn: wire.App, cmd: 0x3d, name: "Get Session Info", privilege: wire.User, least: 1, most: 5, run: getSessionInfo},
}

// getSystemGUID handles Get System GUID (§22.14).
func getSystemGUID(x *Request) error {
	g := authenticator{x.State}.GUID()
	x.put(g[:]...)
	return nil
}

// getAuthCapabilities handles Get Channel Authentication Capabilities (§22.13).
func getAuthCapabilities(x *Request) error {
	channel, asked := x.data[0]&0x0f, wire.Privilege(x.data[1]&0x0f)
	if !onLAN(channel) || asked < wire.Callback || asked > wire.OEMPrivilege {
		return InvalidDataField
	}
	r := authenticator{x.State}
	extended := x.data[0]&0x80 != 0 // the request wants IPMI 2.0 data: K_G status and extended capabilities
	var status byte
	if extended && r.KG() != nil {
		status |= 1 << 5
	}
	for _, a := range x.Host.Accounts() {
		if _, ok := r.account(a.ID); !ok {
			continue
		}
		switch {
		case x.Host.Dialect().IPMI.Faults.AuthCap: // this vendor's BMC answers that there are none
		case a.Name != "":
			status |= 1 << 2 // non-null usernames are enabled
		case a.Password != "":
			status |= 1 << 1 // null usernames are enabled
		default:
			status |= 1 << 0 // anonymous login is enabled
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

// algorithms returns the algorithms of a cipher suite with their tags (table
// 22-20).
func algorithms(id byte) []byte {
	s, ok := wire.Suites[id]
	if !ok {
		return nil
	}
	return []byte{byte(s.Authentication), 0x40 | byte(s.Integrity), 0x80 | byte(s.Confidentiality)}
}

// getCipherSuites handles Get Channel Cipher Suites (§22.15): 16 bytes at a
// time of a list.
func getCipherSuites(x *Request) error {
	channel, payload, index := x.data[0]&0x0f, x.data[1]&0x3f, int(x.data[2]&0x3f)
	if !onLAN(channel) || payload > 1 {
		return InvalidDataField
	}
	is := &x.Host.Dialect().IPMI
	if x.NoResponse = is.NoSuiteList; x.NoResponse {
		return nil
	}
	var all []byte
	bySuite := x.data[2]&0x80 != 0
	suites := is.AdvertisedSuites
	if len(suites) == 0 {
		for _, s := range (authenticator{x.State}).Suites() {
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

// getSessionChallenge handles Get Session Challenge (§22.16), and
// activateSession Activate Session (§22.17): the two steps of an IPMI 1.5
// login.
func getSessionChallenge(x *Request) error {
	id, words, code := x.State.Sessions.Challenge(x.Host.ClientNow(), x.Client.Addr, x.data[0]&0x0f, x.data[1:17], authenticator{x.State})
	if code != 0 {
		return Code(code)
	}
	x.put32(id)
	x.put(words[:]...)
	return nil
}

func activateSession(x *Request) error {
	a, code := x.State.Sessions.Activate(x.Host.ClientNow(), x.Client.Addr, x.Session, x.data, authenticator{x.State})
	if code != 0 {
		return Code(code)
	}
	x.put(a.Auth)
	x.put32(a.ID)
	x.put32(a.Sequence)
	x.put(byte(a.Limit))
	return nil
}

// setSessionPrivilege handles Set Session Privilege Level (§22.18).
func setSessionPrivilege(x *Request) error {
	asked := wire.Privilege(x.data[0] & 0x0f)
	switch {
	case asked == 0: // only returns the present level
	case asked == wire.Callback || asked > wire.OEMPrivilege:
		return InvalidDataField
	case asked == wire.OEMPrivilege && x.Session.User.Limit < asked:
		return Code(0x80) // not available to this user
	case asked > min(x.Session.User.Limit, x.Session.Limit):
		return Code(0x81) // exceeds the limit of the user, the channel or the session
	default:
		x.Session.Privilege = asked
	}
	x.put(byte(x.Session.Privilege))
	return nil
}

// closeSession handles Close Session (§22.19). Session ID 0 with a handle
// names a session as well.
func closeSession(x *Request) error {
	id := le32(x.data)
	var s *session.Session
	if id == 0 {
		if len(x.data) < 5 {
			return Code(0x87)
		}
		if s = x.State.byHandle(x.data[4]); s == nil {
			return Code(0x88)
		}
	} else if s = x.State.Sessions.Find(id); s == nil {
		return Code(0x87)
	}
	if s != x.Session && x.Session.Privilege < wire.Administrator {
		return InsufficientPrivilege
	}
	state, end := x.State, s.ID
	if s != x.Session {
		state.Sessions.Close(end)
		return nil
	}
	x.After = func() { state.Sessions.Close(end) } // the response still belongs to it
	return nil
}

func (st *State) byHandle(handle byte) *session.Session {
	for s := range st.Sessions.All() {
		if s.Handle == handle {
			return s
		}
	}
	return nil
}

// getSessionInfo handles Get Session Info (§22.20).
func getSessionInfo(x *Request) error {
	var s *session.Session
	n, active := 0, 0
	index, most := x.data[0], x.State.Sessions.Max()
	for o := range x.State.Sessions.All() {
		active++
		n++
		if n == int(index) {
			s = o
		}
	}
	switch {
	case index == 0:
		s = x.Session
	case index == 0xfe && len(x.data) >= 2:
		s = x.State.byHandle(x.data[1])
	case index == 0xff && len(x.data) >= 5:
		s = x.State.Sessions.Find(le32(x.data[1:]))
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
	x.put(0, 0, 0, 0, 0, 0) // the client's MAC address, which loopback does not have
	x.put16(s.From.Port())
	return nil
}
