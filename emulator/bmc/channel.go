package bmc

import (
	"bytes"
	"errors"
	"slices"
	"time"
)

// Channel holds the settings of IPMI's LAN channel that no other part holds:
// addresses and ports are in Network, names, passwords and roles in Access.
// Numbers are IPMI's.
type Channel struct {
	Limit          byte `json:"limit,omitempty"` // privilege limit; 0: administrator
	AlertsDisabled bool `json:"mute,omitempty"`  // PEF alerting is disabled
	// OffAfterReset disables the channel at the next reset of the machine,
	// OnAfterReset enables it.
	OffAfterReset bool `json:"off,omitempty"`
	OnAfterReset  bool `json:"back,omitempty"` // see OffAfterReset
	// AuthTypes are the enabled authentication types of IPMI 1.5, by privilege
	// level from callback up; nil: none.
	AuthTypes []byte `json:"authTypes,omitempty"`
	// Suites are the privilege limits of the cipher suites, 4 bits each; nil:
	// the channel's limit for all.
	Suites []byte `json:"suites,omitempty"`
	// Audit logs users that bad passwords have locked out.
	Audit bool `json:"audit,omitempty"`
	// KG is K_G; nil: none. In a View it is removed: see HasKG.
	KG    []byte `json:"key,omitempty"`
	HasKG bool   `json:"-"`

	Users []IPMIUser `json:"users,omitempty"` // by account ID
	// Parameters are parameters that are only stored.
	Parameters []Parameter `json:"written,omitempty"`
}

// Parameter is a stored IPMI parameter.
type Parameter struct {
	Table byte   `json:"table"`         // table of parameters: one per Set command
	Param byte   `json:"param"`         // parameter selector
	Set   byte   `json:"set,omitempty"` // set selector
	Data  []byte `json:"data"`          // parameter data
}

// IPMIUser holds what IPMI stores of a user besides its account.
type IPMIUser struct {
	Account string `json:"account"` // ID of the account that it has or will have
	// Name, Enabled and Role belong to a user without a password. Such a user has no
	// account yet.
	Name    string `json:"name,omitempty"`
	Enabled bool   `json:"enabled,omitempty"` // see Name
	Role    Role   `json:"role,omitempty"`
	// Limit is a privilege limit that no role expresses; 0: the role's.
	Limit              byte `json:"limit,omitempty"`
	Callback           bool `json:"callback,omitempty"` // restricted to callback
	LinkAuthentication bool `json:"link,omitempty"`     // link authentication is enabled
	NoSOL              bool `json:"noSOL,omitempty"`    // serial over LAN is forbidden
	// LongPassword means that the password was set as a 20-byte one.
	LongPassword bool `json:"long,omitempty"`
}

// channel returns the channel settings.
func (b *BMC) channel() *Channel {
	if b.st.Channel == nil {
		return &b.spec.Channel
	}
	return b.st.Channel
}

// forkChannel returns a copy that a step may change, and stores it.
func (b *BMC) forkChannel() *Channel {
	c := *b.channel()
	c.Users, c.Parameters = slices.Clone(c.Users), slices.Clone(c.Parameters)
	return &c
}

// publicChannel returns the channel as a View shows it. BMCs with default
// settings share it.
func (b *BMC) publicChannel() *Channel {
	if b.st.Channel == nil && b.spec.Channel.KG == nil {
		return &b.spec.Channel
	}
	return b.channel().public()
}

// public returns a channel without its key.
func (c *Channel) public() *Channel {
	out := *c
	out.KG, out.HasKG = nil, c.KG != nil
	return &out
}

// User returns the IPMI settings of an account's user.
func (c *Channel) User(account string) IPMIUser {
	for _, u := range c.Users {
		if u.Account == account {
			return u
		}
	}
	return IPMIUser{Account: account}
}

// put stores a user; one with default settings is removed.
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

// Parameter returns a stored parameter; nil when it was not set.
func (c *Channel) Parameter(table, param, set byte) []byte {
	for _, w := range c.Parameters {
		if w.Table == table && w.Param == param && w.Set == set {
			return w.Data
		}
	}
	return nil
}

// SetChannel replaces the channel settings, except for users, K_G and stored
// parameters.
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

// KGSize is the length of K_G in bytes.
const KGSize = 20

// SetKG sets K_G; nil removes it.
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

// KG returns K_G; nil when there is none.
func (b *BMC) KG() []byte { return b.channel().KG }

// maxParameter is the longest stored parameter in bytes.
const maxParameter = 64

// SetParameter stores a parameter.
type SetParameter struct{ Parameter }

func (c SetParameter) apply(b *BMC, _ time.Time) ([]Event, error) {
	if len(c.Data) > maxParameter {
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

// endVolatileChannel ends volatile settings at a reset or loss of power of the
// machine.
func (b *BMC) endVolatileChannel(now time.Time) []Event {
	b.endPostpone()
	if c := b.channel(); c.OffAfterReset || c.OnAfterReset {
		net := b.net()
		net.IPMI.On = c.OnAfterReset
		b.setNet(net)
		b.switched()
	}
	return append(b.countBoot(now), b.resetBootstrap(now)...)
}

// switched clears OffAfterReset and OnAfterReset.
func (b *BMC) switched() {
	if c := b.channel(); c.OffAfterReset || c.OnAfterReset {
		to := b.forkChannel()
		to.OffAfterReset, to.OnAfterReset = false, false
		b.st.Channel = to
	}
}

// SwitchChannel enables or disables the channel until the machine is reset.
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

// SetChannelAfterReset says whether the channel is enabled after the next reset
// of the machine.
type SetChannelAfterReset struct{ On bool }

func (c SetChannelAfterReset) apply(b *BMC, _ time.Time) ([]Event, error) {
	is, to := b.net().IPMI.On, b.forkChannel()
	to.OffAfterReset, to.OnAfterReset = is && !c.On, !is && c.On
	b.st.Channel = to
	return nil, nil
}

// AfterReset reports whether the channel will be enabled after the next reset
// of the machine.
func (c *Channel) AfterReset(on bool) bool { return on && !c.OffAfterReset || c.OnAfterReset }
