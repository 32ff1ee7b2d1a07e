package bmc

import (
	"bytes"
	"errors"
	"slices"
	"time"
)

// Channel is what somebody has set of the LAN channel of IPMI and what no other
// part holds: addresses and ports are the Network's, names, passwords and roles
// those of Access. Numbers are those of IPMI.
type Channel struct {
	Limit          byte `json:"limit,omitempty"` // of privileges; 0: administrator
	AlertsDisabled bool `json:"mute,omitempty"`  // no alerts
	// Off says that the next reset of the machine switches the channel off, and
	// Back that it switches it on.
	OffAfterReset bool `json:"off,omitempty"`
	OnAfterReset  bool `json:"back,omitempty"`
	// AuthTypes are the types of IPMI 1.5 that are taken, by privilege from
	// callback up; nil: none.
	AuthTypes []byte `json:"authTypes,omitempty"`
	// Suites are the limits of the cipher suites, a nibble each; nil: that of
	// the channel for all.
	Suites []byte `json:"suites,omitempty"`
	// Audit notes users that wrong passwords have locked out.
	Audit bool `json:"audit,omitempty"`
	// Key is K_g; nil: none. A View has it blanked: see Keyed.
	KG    []byte `json:"key,omitempty"`
	HasKG bool   `json:"-"`

	Users []IPMIUser `json:"users,omitempty"` // by account ID
	// Written are parameters that nothing else depends on.
	Parameters []Parameter `json:"written,omitempty"`
}

// Parameter is a parameter as it was written.
type Parameter struct {
	Table byte   `json:"table"` // of parameters: each command has its own
	Param byte   `json:"param"`
	Set   byte   `json:"set,omitempty"`
	Data  []byte `json:"data"`
}

// IPMIUser is what IPMI knows of a user and an account does not hold.
type IPMIUser struct {
	Account string `json:"account"` // ID of the account that it has or will have
	// Name, Enabled and Role are those of a user that has no password yet, and
	// so is no account.
	Name    string `json:"name,omitempty"`
	Enabled bool   `json:"enabled,omitempty"`
	Role    Role   `json:"role,omitempty"`
	// Limit is a privilege limit that no role stands for; 0: that of the role.
	Limit              byte `json:"limit,omitempty"`
	Callback           bool `json:"callback,omitempty"` // no more than that without being called back
	LinkAuthentication bool `json:"link,omitempty"`     // authenticates links
	NoSOL              bool `json:"noSOL,omitempty"`
	// Long says that the password was given as one of 20 bytes.
	LongPassword bool `json:"long,omitempty"`
}

// channel is how the channel is set.
func (b *BMC) channel() *Channel {
	if b.st.Channel == nil {
		return &b.spec.Channel
	}
	return b.st.Channel
}

// forkChannel is a copy that a step may write and put in place.
func (b *BMC) forkChannel() *Channel {
	c := *b.channel()
	c.Users, c.Parameters = slices.Clone(c.Users), slices.Clone(c.Parameters)
	return &c
}

// shownChannel is what a View shows of the channel. BMCs of which nothing was
// set share it.
func (b *BMC) shownChannel() *Channel {
	if b.st.Channel == nil && b.spec.Channel.KG == nil {
		return &b.spec.Channel
	}
	return b.channel().public()
}

// public is a channel without its key.
func (c *Channel) public() *Channel {
	out := *c
	out.KG, out.HasKG = nil, c.KG != nil
	return &out
}

// User is what there is of a user beside its account.
func (c *Channel) User(account string) IPMIUser {
	for _, u := range c.Users {
		if u.Account == account {
			return u
		}
	}
	return IPMIUser{Account: account}
}

// put puts a user in its place; one of which there is nothing to keep goes.
func (c *Channel) put(u IPMIUser) {
	i, found := slices.BinarySearchFunc(c.Users, u, func(a, b IPMIUser) int { return compareIDs(a.Account, b.Account) })
	switch empty := u == (IPMIUser{Account: u.Account}); {
	case found && empty:
		c.Users = slices.Delete(c.Users, i, i+1)
	case found:
		c.Users[i] = u
	case !empty:
		c.Users = slices.Insert(c.Users, i, u)
	}
}

// Parameter is a parameter as it was written; nil when it was not.
func (c *Channel) Parameter(table, param, set byte) []byte {
	for _, w := range c.Parameters {
		if w.Table == table && w.Param == param && w.Set == set {
			return w.Data
		}
	}
	return nil
}

// SetChannel sets how the channel is, but for its users, its key and what was
// written.
type SetChannel struct{ Channel Channel }

func (c SetChannel) apply(b *BMC, _ time.Time) ([]Event, error) {
	if n := len(c.Channel.AuthTypes); n != 0 && n != 5 {
		return nil, errors.New("bmc: channel: authentication types: must be 5 bytes or none")
	}
	if n := len(c.Channel.Suites); n != 0 && n != 8 {
		return nil, errors.New("bmc: channel: limits of suites: must be 8 bytes or none")
	}
	was, to := b.channel(), c.Channel
	to.Users, to.Parameters, to.KG, to.HasKG = was.Users, was.Parameters, was.KG, false
	b.st.Channel = &to
	return nil, nil
}

// KGSize is how long a key is, in bytes.
const KGSize = 20

// SetKG sets K_g; nil is none.
type SetKG struct{ Key []byte }

func (c SetKG) apply(b *BMC, _ time.Time) ([]Event, error) {
	if n := len(c.Key); n != 0 && n != KGSize {
		return nil, errors.New("bmc: channel: key: must be 20 bytes or none")
	}
	to := b.forkChannel()
	to.KG = bytes.Clone(c.Key)
	b.st.Channel = to
	return nil, nil
}

// KG is K_g; nil when there is none.
func (b *BMC) KG() []byte { return b.channel().KG }

// maxWritten bounds what can be written into one parameter, in bytes.
const maxWritten = 64

// SetParameter writes a parameter that nothing else depends on.
type SetParameter struct{ Parameter }

func (c SetParameter) apply(b *BMC, _ time.Time) ([]Event, error) {
	if len(c.Data) > maxWritten {
		return nil, errors.New("bmc: channel: parameter: too long")
	}
	to := b.forkChannel()
	c.Data = bytes.Clone(c.Data)
	i := slices.IndexFunc(to.Parameters, func(w Parameter) bool { return w.Table == c.Table && w.Param == c.Param && w.Set == c.Set })
	if i < 0 {
		to.Parameters = append(to.Parameters, c.Parameter)
	} else {
		to.Parameters[i] = c.Parameter
	}
	b.st.Channel = to
	return nil, nil
}

// rebooted ends what was set until the machine is reset or loses its power.
func (b *BMC) rebooted(now time.Time) []Event {
	b.attend()
	if c := b.channel(); c.OffAfterReset || c.OnAfterReset {
		net := b.net()
		net.IPMI.On = c.OnAfterReset
		b.setNet(net)
		b.switched()
	}
	return append(b.emptied(now), b.bootstrapped(now)...)
}

// switched forgets what was to become of the channel's switch.
func (b *BMC) switched() {
	if c := b.channel(); c.OffAfterReset || c.OnAfterReset {
		to := b.forkChannel()
		to.OffAfterReset, to.OnAfterReset = false, false
		b.st.Channel = to
	}
}

// SwitchChannel switches the channel on or off until the machine is reset.
type SwitchChannel struct{ On bool }

func (c SwitchChannel) apply(b *BMC, _ time.Time) ([]Event, error) {
	net, to := b.net(), b.forkChannel()
	if net.IPMI.On == c.On {
		return nil, nil
	}
	stays := to.AfterReset(net.IPMI.On)
	net.IPMI.On = c.On
	b.setNet(net)
	to.OffAfterReset, to.OnAfterReset = c.On && !stays, !c.On && stays
	b.st.Channel = to
	return nil, nil
}

// SetChannelAfterReset says whether the channel will be on after the next reset of the
// machine.
type SetChannelAfterReset struct{ On bool }

func (c SetChannelAfterReset) apply(b *BMC, _ time.Time) ([]Event, error) {
	is, to := b.net().IPMI.On, b.forkChannel()
	to.OffAfterReset, to.OnAfterReset = is && !c.On, !is && c.On
	b.st.Channel = to
	return nil, nil
}

// AfterReset says whether the channel, which is on or not, will be on after the next
// reset of the machine.
func (c *Channel) AfterReset(on bool) bool { return on && !c.OffAfterReset || c.OnAfterReset }
