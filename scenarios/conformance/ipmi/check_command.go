package ipmi

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Checks of commands.
var commandChecks = []Check{
	{"privileges", "commands above the session's privilege level are refused with D4h, unknown commands with C1h", "appendix G, §5.2", Must, checkPrivileges},
	{"answer lengths", "each response has the length that its command specifies", "§20–§35", Must, checkLengths},
	{"request lengths", "a request that is too long is refused with C7h", "§5.2", Should, checkRequestLengths},
	{"header", "a response comes from the address of the request", "§13.8", Must, checkHeader},
}

// Commands that tell a level from another: they change nothing.
var (
	getUserAccess = Request{NetFn: App, Command: 0x44, Data: []byte{thisChannel, 1}, Name: "Get User Access"} // OPERATOR
	noSuchControl = Request{NetFn: Chassis, Command: 0x02, Data: []byte{0x0F}, Name: "Chassis Control"}       // likewise; reserved value
)

// probes are commands that clients ask to find out what they talk to. To C1h
// they are used, any other code they print.
var probes = []Request{
	{NetFn: Group, Command: 0x3E, Data: []byte{0x00, 0x02}, Name: "HPM.2 capabilities"},
	{NetFn: Group, Command: 0x00, Data: []byte{0x00}, Name: "PICMG properties"},
	{NetFn: Group, Command: 0x00, Data: []byte{0x03}, Name: "VITA properties"},
	{NetFn: App, Command: 0x7E, Name: "an unknown command"},
}

// excess reports whether an answer that refuses says more than it may: of a
// group extension who defines it, of all else nothing (§5.1, §5.2).
func excess(r Request, data []byte) bool {
	if r.NetFn == Group && len(data) == 1 {
		return data[0] != r.Data[0]
	}
	return len(data) > 0
}

func checkPrivileges(ctx context.Context, p *probe) error {
	s, err := p.open(ctx)
	if err != nil {
		return err
	}
	for _, r := range probes {
		data, err := s.Do(ctx, r)
		if err := refused(err, r.String(), InvalidCommand); err != nil {
			return err
		}
		if excess(r, data) {
			return findingf("%s is refused with % X behind the code", r, data)
		}
	}
	for _, r := range []Request{getUserAccess, noSuchControl} {
		data, err := s.Do(ctx, r)
		if err := refused(err, r.String()+" at USER level", NoPrivilege); err != nil {
			return err
		}
		if len(data) > 0 {
			return findingf("%s is refused with % X behind the code", r, data)
		}
	}
	if _, err := s.Raise(ctx, Administrator); err != nil {
		return err
	}
	if _, err := s.Do(ctx, getUserAccess); err != nil {
		return requireStep(err, getUserAccess.String()+" at ADMINISTRATOR level")
	}
	_, err = s.Do(ctx, noSuchControl)
	return refused(err, noSuchControl.String()+" with a reserved value", InvalidField, 0xC9)
}

// lengths are commands and how many bytes their answers have after the
// completion code. A command that a BMC does not have is not counted.
var lengths = []struct {
	Request
	bytes []int
	where string
}{
	{GetDeviceID, []int{11, 15}, "§20.1"},
	{Request{NetFn: App, Command: 0x04, Name: "Get Self Test Results"}, []int{2}, "§20.4"},
	{Request{NetFn: App, Command: 0x07, Name: "Get ACPI Power State"}, []int{2}, "§20.7"},
	{Request{NetFn: App, Command: 0x08, Name: "Get Device GUID"}, []int{16}, "§20.8"},
	{Request{NetFn: App, Command: 0x25, Name: "Get Watchdog Timer"}, []int{8}, "§27.7"},
	{Request{NetFn: App, Command: 0x2F, Name: "Get BMC Global Enables"}, []int{1}, "§22.2"},
	{Request{NetFn: App, Command: 0x31, Name: "Get Message Flags"}, []int{1}, "§22.4"},
	{GetSystemGUID, []int{16}, "§22.14"},
	{Request{NetFn: App, Command: 0x38, Data: []byte{0x8E, 4}, Name: "Get Channel Authentication Capabilities"}, []int{8}, "§22.13"},
	{Request{NetFn: App, Command: 0x3B, Data: []byte{0}, Name: "Set Session Privilege Level"}, []int{1}, "§22.18"},
	{Request{NetFn: App, Command: 0x41, Data: []byte{thisChannel, 0x80}, Name: "Get Channel Access"}, []int{2}, "§22.23"},
	{Request{NetFn: App, Command: 0x42, Data: []byte{thisChannel}, Name: "Get Channel Info"}, []int{9}, "§22.24"},
	{getUserAccess, []int{4}, "§22.27"},
	{Request{NetFn: App, Command: 0x46, Data: []byte{2}, Name: "Get User Name"}, []int{16}, "§22.29"},
	{Request{NetFn: App, Command: 0x4E, Data: []byte{thisChannel}, Name: "Get Channel Payload Support"}, []int{8}, "§24.8"},
	{Request{NetFn: App, Command: 0x4D, Data: []byte{thisChannel, 2}, Name: "Get User Payload Access"}, []int{4}, "§24.7"},
	{Request{NetFn: App, Command: 0x4A, Data: []byte{1}, Name: "Get Payload Activation Status"}, []int{3}, "§24.4"},
	{Request{NetFn: App, Command: 0x56, Data: []byte{thisChannel, 0, 1}, Name: "Set Channel Security Keys"}, []int{1, 21}, "§22.25"},
	{Request{NetFn: Chassis, Command: 0x00, Name: "Get Chassis Capabilities"}, []int{5, 6}, "§28.1"},
	{GetChassisStatus, []int{3, 4}, "§28.2"},
	{Request{NetFn: Chassis, Command: 0x07, Name: "Get System Restart Cause"}, []int{2}, "§28.11"},
	{Request{NetFn: Chassis, Command: 0x09, Data: []byte{5, 0, 0}, Name: "Get System Boot Options 5"}, []int{7}, "§28.13"},
	{Request{NetFn: Chassis, Command: 0x09, Data: []byte{0, 0, 0}, Name: "Get System Boot Options 0"}, []int{3}, "§28.13"},
	{Request{NetFn: Chassis, Command: 0x0F, Name: "Get POH Counter"}, []int{5}, "§28.14"},
	{Request{NetFn: SensorEvent, Command: 0x01, Name: "Get Event Receiver"}, []int{2}, "§29.2"},
	{Request{NetFn: SensorEvent, Command: 0x10, Name: "Get PEF Capabilities"}, []int{3}, "§30.1"},
	{Request{NetFn: Storage, Command: 0x10, Data: []byte{0}, Name: "Get FRU Inventory Area Info"}, []int{3}, "§34.1"},
	{Request{NetFn: Storage, Command: 0x11, Data: []byte{0, 0, 0, 8}, Name: "Read FRU Data"}, []int{9}, "§34.2"},
	{Request{NetFn: Storage, Command: 0x20, Name: "Get SDR Repository Info"}, []int{14}, "§33.9"},
	{Request{NetFn: Storage, Command: 0x22, Name: "Reserve SDR Repository"}, []int{2}, "§33.11"},
	{Request{NetFn: Storage, Command: 0x40, Name: "Get SEL Info"}, []int{14}, "§31.2"},
	{Request{NetFn: Storage, Command: 0x48, Name: "Get SEL Time"}, []int{4}, "§31.10"},
	{Request{NetFn: Storage, Command: 0x5C, Name: "Get SEL Time UTC Offset"}, []int{2}, "§31.11a"},
	{Request{NetFn: Transport, Command: 0x02, Data: []byte{thisChannel, 3, 0, 0}, Name: "Get LAN Configuration 3"}, []int{5}, "§23.2"},
	{Request{NetFn: Transport, Command: 0x02, Data: []byte{thisChannel, 5, 0, 0}, Name: "Get LAN Configuration 5"}, []int{7}, "§23.2"},
	{Request{NetFn: Transport, Command: 0x22, Data: []byte{thisChannel, 1, 0, 0}, Name: "Get SOL Configuration 1"}, []int{2}, "§26.3"},
	{Request{NetFn: Group, Command: 0x01, Data: []byte{0xDC, 1}, Name: "Get DCMI Capabilities 1"}, []int{7}, "DCMI 1.5 §6.1.1"},
	{Request{NetFn: Group, Command: 0x02, Data: []byte{0xDC, 1, 0, 0}, Name: "Get Power Reading"}, []int{18}, "DCMI 1.5 §6.6.1"},
}

func checkLengths(ctx context.Context, p *probe) error {
	s, err := p.administrator(ctx)
	if err != nil {
		return err
	}
	for _, c := range lengths {
		data, err := s.Do(ctx, c.Request)
		switch code := Code(0); {
		case errors.As(err, &code) && excess(c.Request, data):
			return findingf("%s: %v, and % X behind it", c.Request, code, data)
		case errors.As(err, &code):
			continue
		case err != nil:
			return requireStep(err, c.String())
		case !slices.Contains(c.bytes, len(data)):
			return findingf("%s: %d bytes, want %v (%s): % X", c.Request, len(data), c.bytes, c.where, data)
		}
	}
	for _, r := range []Request{GetDeviceID, GetChassisStatus, GetSystemGUID} {
		if _, err := s.Do(ctx, r); err != nil {
			return requireStep(err, fmt.Sprintf("%s, which every BMC has", r))
		}
	}
	return nil
}

func checkRequestLengths(ctx context.Context, p *probe) error {
	s, err := p.administrator(ctx)
	if err != nil {
		return err
	}
	for _, r := range []Request{GetDeviceID, GetChassisStatus, GetSystemGUID, getUserAccess} {
		r.Data = append(slices.Clone(r.Data), 0xA5)
		_, err := s.Do(ctx, r)
		if err := refused(err, r.String()+" with a byte too many", WrongLength); err != nil {
			return err
		}
	}
	r := getUserAccess
	r.Data = r.Data[:1]
	_, err = s.Do(ctx, r)
	return refused(err, r.String()+" with a byte too few", WrongLength)
}

func checkHeader(ctx context.Context, p *probe) error {
	s, err := p.open(ctx)
	if err != nil {
		return err
	}
	m := s.conn.request(GetDeviceID)
	for _, tt := range []struct{ from, lun byte }{{addressConsole, 0}, {addressConsole, 2}, {0x8F, 1}} {
		m.From, m.FromLUN = tt.from, tt.lun
		m.Sequence = s.conn.nextSequence()
		err := s.conn.roundTrip(ctx, GetDeviceID.String(), func() ([]byte, error) { return s.message(m) }, func(b []byte) (bool, error) {
			a, ok := s.answer(b)
			if !ok || !a.answers(m) {
				return false, nil
			}
			if a.ToLUN != tt.lun || a.From != addressBMC || a.FromLUN != 0 {
				return false, findingf("asked by %02Xh/%d, answered to %02Xh/%d by %02Xh/%d", tt.from, tt.lun, a.To, a.ToLUN, a.From, a.FromLUN)
			}
			return true, nil
		})
		if err != nil {
			return requireStep(err, "a request of software "+fmt.Sprintf("%02Xh, LUN %d", tt.from, tt.lun))
		}
	}
	return nil
}
