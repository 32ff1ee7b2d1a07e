package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/scenarios/conformance/ipmi"
)

// ipmiChecks are the checks of IPMI over LAN.
var ipmiChecks = []Check{
	{
		ID: "IPMI-001", Title: "authentication capabilities and a truthful list of cipher suites", Level: ReadOnly, Protocol: IPMI, Step: Register,
		Predicts: "clients hang for 10 s", Remedy: "name the cipher suite in the client's configuration",
		After: []string{"IPMI-004"}, Needs: []Facility{NeedsIPMI}, Run: suitesTruthful,
	},
	{
		ID: "IPMI-002", Title: "cipher suite 0, authentication none and null users are refused", Level: ReadOnly, Protocol: IPMI, Step: Day2,
		Predicts: "anybody controls the server", Remedy: "disable cipher suite 0 and the null user",
		After: []string{"IPMI-004"}, Needs: []Facility{NeedsIPMI}, Run: ipmiClosed,
	},
	{
		ID: "IPMI-003", Title: "device ID, GUID, FRU, SDR and SEL are readable", Level: ReadOnly, Protocol: IPMI, Step: Inspect,
		Predicts: "inspection lacks data", Remedy: "inspect in-band",
		After: []string{"IPMI-004"}, Needs: []Facility{NeedsIPMI}, Run: inventoryByIPMI,
	},
	{
		ID: "IPMI-004", Title: "ADMINISTRATOR level works; a wrong password fails fast", Level: ReadOnly, Protocol: IPMI, Step: Register,
		Predicts: "power control fails", Remedy: "give the account the privilege ADMINISTRATOR on the LAN channel",
		After: []string{"NET-007"}, Needs: []Facility{NeedsIPMI}, Run: privilegeReached,
	},
	{
		ID: "IPMI-005", Title: "serial over LAN opens and closes", Level: Reversible, Protocol: IPMI, Step: Day2,
		Predicts: "no console", Remedy: "enable serial over LAN",
		After: []string{"IPMI-004"}, Needs: []Facility{NeedsIPMI}, Run: consoleOpens,
	},
	{
		ID: "IPMI-006", Title: "ipmitool and FreeIPMI succeed; the workarounds that they need", Level: ReadOnly, Protocol: IPMI, Step: Register,
		Predicts: "clients need workarounds", Remedy: "use the workarounds of the report",
		After: []string{"IPMI-004"}, Needs: []Facility{NeedsIPMI}, Run: programsSucceed,
	},
	{
		ID: "IPMI-007", Title: "30 commands in a row without loss", Level: ReadOnly, Protocol: IPMI, Step: Register,
		Predicts: "the power state flaps", Remedy: "check the network, and lengthen the client's time-out",
		After: []string{"IPMI-004"}, Needs: []Facility{NeedsIPMI}, Run: commandsAnswered,
	},
	{
		ID: "IPMI-008", Title: "Redfish and IPMI agree on power, boot device and sensors", Level: ReadOnly, Protocol: Both, Step: Day2,
		Predicts: "the two protocols contradict", Remedy: "use one protocol",
		After: []string{"IPMI-004", "SYS-004"}, Needs: []Facility{NeedsIPMI}, Run: protocolsAgree,
	},
}

// thisChannel is the channel that a request comes from (§6.3).
const thisChannel = 0x0E

// dialIPMI opens a socket to the BMC's IPMI.
func (r *Run) dialIPMI(ctx context.Context) (*ipmi.Conn, error) {
	conn, err := ipmi.Dial(ctx, r.bmc.conf.IPMI)
	if err == nil {
		conn.Timeout, conn.Tries = r.ipmiTimeout(), 3
	}
	return conn, err
}

// tryIPMI opens and closes a session with a cipher suite.
func (r *Run) tryIPMI(ctx context.Context, suite byte) error {
	conn, err := r.dialIPMI(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	conf := r.Config()
	s, err := conn.Login(ctx, ipmi.Login{Name: conf.Username, Password: conf.Password, Suite: suite, Role: ipmi.Administrator})
	if err != nil {
		return err
	}
	return s.Close(ctx)
}

// suitesTruthful compares the list of cipher suites with the sessions that open.
func suitesTruthful(ctx context.Context, r *Run) Outcome {
	if r.bmc.dry != nil {
		return r.dryIPMI("Get Channel Authentication Capabilities, Get Channel Cipher Suites, sessions")
	}
	conn, err := r.dialIPMI(ctx)
	if err != nil {
		return Judge(err)
	}
	defer conn.Close()
	capabilities, err := conn.AuthCapabilities(ctx, ipmi.V15, thisChannel, ipmi.Administrator, true)
	if err != nil {
		return judgeIPMI(err)
	}
	if capabilities.Extended && !capabilities.V20 {
		return Failed("the channel does not take IPMI 2.0 sessions")
	}
	o := Passed("")
	if capabilities.Names&4 == 0 {
		o = Warned("the authentication capabilities report no users with names").Quirky("ipmi-authcap")
	}
	listed, err := conn.CipherSuites(ctx, ipmi.V15, thisChannel)
	if err != nil {
		o = Failed("the list of cipher suites: %v", err)
		if errors.Is(err, ipmi.ErrNoAnswer) {
			o = o.Quirky("ipmi-cipher-list-silent")
		}
		return o
	}
	var ids []string
	for _, s := range listed {
		ids = append(ids, fmt.Sprint(s.ID))
	}
	o = o.With("cipher suites", "%s", strings.Join(ids, " "))
	opens := map[byte]bool{}
	for _, id := range ipmiSuites {
		err := r.tryIPMI(ctx, id)
		opens[id] = err == nil
		offered := slices.ContainsFunc(listed, func(s ipmi.Suite) bool { return s.ID == id })
		if offered && err != nil && !errors.Is(err, ipmi.ErrKey) && !errors.Is(err, ipmi.ErrPassword) && !errors.Is(err, ipmi.ErrMalformed) {
			o.Verdict, o.Reason = Fail, fmt.Sprintf("cipher suite %d is listed, and opens no session: %v", id, err)
			o = o.Quirky("ipmi-cipher-list-lies")
		}
	}
	if opens[17] && !opens[3] && len(listed) == 1 && o.Verdict != Fail {
		o.Verdict, o.Reason = Warn, "cipher suite 17 is the only one: clients must name it"
		o = o.Quirky("ipmi-cipher17-only")
	}
	return o
}

// ipmiClosed lets the checks of the IPMI suite try to open sessions without a
// password.
func ipmiClosed(ctx context.Context, r *Run) Outcome {
	if r.bmc.dry != nil {
		return r.dryIPMI("sessions without a password")
	}
	wanted := []string{"suite 0", "v1.5 without a password"}
	var checks []ipmi.Check
	for _, c := range ipmi.Checks() {
		if slices.Contains(wanted, c.Name) {
			checks = append(checks, c)
		}
	}
	conf := r.Config()
	target := ipmi.Target{Address: conf.IPMI, Admin: ipmi.Account{Name: conf.Username, Password: conf.Password}, Timeout: r.ipmiTimeout(), Tries: 2}
	for _, res := range ipmi.Run(ctx, target, checks) {
		switch res.Verdict {
		case ipmi.Fail, ipmi.Warn:
			return Failed("%s: %s", res.Name, res.Detail)
		case ipmi.Broken:
			return Outcome{Verdict: Broken, Reason: res.Detail}
		}
	}
	// The null user with an empty password.
	conn, err := r.dialIPMI(ctx)
	if err != nil {
		return Judge(err)
	}
	defer conn.Close()
	for _, suite := range ipmiSuites {
		if s, err := conn.Login(ctx, ipmi.Login{Suite: suite, Role: ipmi.User}); err == nil {
			_ = s.Close(ctx)
			return Failed("the null user opens a session with an empty password")
		}
	}
	return Passed("")
}

// ipmiReads are commands that inspection needs, with the least length of their
// data.
var ipmiReads = []struct {
	request ipmi.Request
	bytes   int
}{
	{ipmi.GetDeviceID, 11},
	{ipmi.GetSystemGUID, 16},
	{ipmi.Request{NetFn: ipmi.Storage, Command: 0x10, Data: []byte{0}, Name: "Get FRU Inventory Area Info"}, 3},
	{ipmi.Request{NetFn: ipmi.Storage, Command: 0x11, Data: []byte{0, 0, 0, 8}, Name: "Read FRU Data"}, 9},
	{ipmi.Request{NetFn: ipmi.Storage, Command: 0x20, Name: "Get SDR Repository Info"}, 14},
	{ipmi.Request{NetFn: ipmi.Storage, Command: 0x40, Name: "Get SEL Info"}, 14},
}

// inventoryByIPMI reads what inspection needs.
func inventoryByIPMI(ctx context.Context, r *Run) Outcome {
	if r.bmc.dry != nil {
		return r.dryIPMI("Get Device ID, Get System GUID, FRU, SDR, SEL")
	}
	s, err := r.IPMISession(ctx)
	if err != nil {
		return judgeIPMI(err)
	}
	defer r.IPMIClose(ctx, s)
	o := Passed("")
	for _, q := range ipmiReads {
		data, err := r.IPMIDo(ctx, s, q.request)
		if err == nil {
			err = short(q.request.Name, data, q.bytes)
		}
		if err != nil {
			return judgeIPMI(err)
		}
		switch q.request.Name {
		case ipmi.GetDeviceID.Name:
			o = o.With("manufacturer", "%d", int(data[6])|int(data[7])<<8|int(data[8])<<16).With("IPMI", "%d.%d", data[4]&0x0F, data[4]>>4)
		case "Read FRU Data":
			if header := data[1:9]; header[0]&0x0F != 1 || sum(header) != 0 {
				return Failed("the common header of FRU 0 is % X", header)
			}
		case "Get SDR Repository Info":
			o = o.With("SDRs", "%d", int(data[1])|int(data[2])<<8)
		}
	}
	return o.merge(r.sensorsByIPMI(ctx, s))
}

func sum(b []byte) (s byte) {
	for _, x := range b {
		s += x
	}
	return s
}

// merge returns the outcome, with the other's verdict where that is worse.
func (o Outcome) merge(other Outcome) Outcome {
	o.Quirks = append(o.Quirks, other.Quirks...)
	if other.Verdict != Pass && o.Verdict == Pass {
		o.Verdict, o.Reason = other.Verdict, other.Reason
	}
	return o
}

// maxSDRs bounds the records that sensorsByIPMI reads.
const maxSDRs = 20

// sensorsByIPMI reads the first sensor records and their sensors (§33.12, §35.14).
func (r *Run) sensorsByIPMI(ctx context.Context, s *ipmi.Session) Outcome {
	data, err := r.IPMIDo(ctx, s, ipmi.Request{NetFn: ipmi.Storage, Command: 0x22, Name: "Reserve SDR Repository"})
	reservation := []byte{0, 0}
	if err == nil && len(data) == 2 {
		reservation = data
	}
	next := []byte{0, 0}
	off := 0
	for range maxSDRs {
		header, err := r.IPMIDo(ctx, s, ipmi.Request{NetFn: ipmi.Storage, Command: 0x23, Data: append(slices.Concat(reservation, next), 0, 8), Name: "Get SDR"})
		if err == nil {
			err = short("Get SDR", header, 10)
		}
		if err != nil {
			return judgeIPMI(err)
		}
		const full, owner, number = 0x01, 7, 9
		kind := header[5]
		if kind == full {
			if header[owner] != 0x20 {
				return Warned("the record of sensor %02Xh names owner %02Xh, not the BMC", header[number], header[owner]).Quirky("ipmi-assumebmcowner")
			}
			form, err := r.IPMIDo(ctx, s, ipmi.Request{NetFn: ipmi.Storage, Command: 0x23, Data: append(slices.Concat(reservation, next), 13, 1), Name: "Get SDR"})
			if err == nil && len(form) == 3 && form[2] != 0x01 {
				return Warned("the full record of sensor %02Xh has event type %02Xh, not that of thresholds", header[number], form[2]).Quirky("ipmi-discretereading")
			}
			reading, err := r.IPMIDo(ctx, s, ipmi.Request{NetFn: ipmi.SensorEvent, Command: 0x2D, Data: []byte{header[number]}, Name: "Get Sensor Reading"})
			if code := ipmi.Code(0); err != nil && !errors.As(err, &code) {
				return judgeIPMI(err)
			}
			if err == nil && len(reading) >= 2 && reading[1]&0x40 == 0 && reading[1]&0x20 == 0 {
				off++
			}
		}
		next = header[:2]
		if next[0] == 0xFF && next[1] == 0xFF {
			break
		}
	}
	if off > 3 {
		return Warned("scanning of %d threshold sensors is disabled, although they have readings", off).Quirky("ipmi-ignorescanningdisabled")
	}
	return Passed("")
}

// privilegeReached opens a session of ADMINISTRATOR level, and one with a name that
// does not exist.
func privilegeReached(ctx context.Context, r *Run) Outcome {
	if r.bmc.dry != nil {
		return r.dryIPMI("sessions, Set Session Privilege Level")
	}
	s, err := r.IPMISession(ctx)
	if err != nil {
		o := judgeIPMI(err)
		if o.Verdict == Fail && errors.Is(err, ipmi.ErrKey) {
			o.Reason = "the RAKP codes are not those of the standard: " + o.Reason
		}
		return o
	}
	r.IPMIClose(ctx, s)
	conn, err := r.dialIPMI(ctx)
	if err != nil {
		return Judge(err)
	}
	defer conn.Close()
	began := time.Now() // the network's time, not the run's
	wrong, err := conn.Login(ctx, ipmi.Login{Name: stranger, Password: "labctl-wrong", Suite: s.Suite.ID, Role: ipmi.Administrator})
	took := time.Since(began)
	if err == nil {
		_ = wrong.Close(ctx)
		return Failed("a session opens with a name that does not exist")
	}
	o := Passed("").With("cipher suite", "%d", s.Suite.ID).With("refusal after", "%v", took.Round(time.Millisecond))
	if errors.Is(err, ipmi.ErrNoAnswer) {
		o.Verdict, o.Reason = Warn, fmt.Sprintf("a login with a wrong name is not answered: clients wait %v", took.Round(time.Second))
	}
	return o
}

// consoleOpens activates and deactivates serial over LAN. The payload ends with its
// session, so that a crash leaves nothing.
func consoleOpens(ctx context.Context, r *Run) Outcome {
	if r.bmc.dry != nil {
		return r.dryIPMI("Activate Payload, Deactivate Payload")
	}
	if !r.Level().Allows(Reversible) {
		return Judge(ErrLevel)
	}
	s, err := r.IPMISession(ctx)
	if err != nil {
		return judgeIPMI(err)
	}
	defer r.IPMIClose(ctx, s)
	console, err := s.Console(ctx, 1)
	if errors.Is(err, ipmi.ErrMalformed) && strings.Contains(err.Error(), "payloads of 0 and 0 bytes") {
		return Failed("%v", err).Quirky("ipmi-solpayloadsize")
	}
	if err != nil {
		return judgeIPMI(err)
	}
	if err := console.Close(ctx); err != nil {
		return judgeIPMI(err)
	}
	return Passed("").With("payload", "%d bytes in, %d out", console.Inbound, console.Outbound)
}

// commandsAnswered sends commands one after another, each once.
func commandsAnswered(ctx context.Context, r *Run) Outcome {
	const commands = 30
	if r.bmc.dry != nil {
		return r.dryIPMI(fmt.Sprintf("Get Chassis Status, %d times", commands))
	}
	s, err := r.IPMISession(ctx)
	if err != nil {
		return judgeIPMI(err)
	}
	defer r.IPMIClose(ctx, s)
	s.Conn().Timeout, s.Conn().Tries = r.ipmiTimeout(), 1
	lost := 0
	for range commands {
		_, err := r.IPMIDo(ctx, s, ipmi.GetChassisStatus)
		switch {
		case errors.Is(err, ipmi.ErrNoAnswer):
			lost++
		case err != nil:
			return judgeIPMI(err)
		}
	}
	o := Passed("").With("lost", "%d of %d", lost, commands)
	switch {
	case lost > commands/10:
		o.Verdict, o.Reason = Fail, fmt.Sprintf("%d of %d commands are not answered", lost, commands)
	case lost > 0:
		o.Verdict, o.Reason = Warn, fmt.Sprintf("%d of %d commands are not answered", lost, commands)
	}
	return o
}

// ipmiTargets are boot devices of IPMI (§28.13, parameter 5) by the target of
// Redfish.
var ipmiTargets = map[byte][]string{
	0: {"None", ""}, 1: {"Pxe"}, 2: {"Hdd"}, 5: {"Cd", "UsbCd"}, 6: {"BiosSetup"},
}

// protocolsAgree compares power and boot device.
func protocolsAgree(ctx context.Context, r *Run) Outcome {
	if r.bmc.dry != nil {
		return r.dryIPMI("Get Chassis Status, Get System Boot Options")
	}
	s, err := r.IPMISession(ctx)
	if err != nil {
		return judgeIPMI(err)
	}
	defer r.IPMIClose(ctx, s)
	r.Forget()
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	status, err := r.IPMIDo(ctx, s, ipmi.GetChassisStatus)
	if err == nil {
		err = short("Get Chassis Status", status, 3)
	}
	if err != nil {
		return judgeIPMI(err)
	}
	state := place.System.At("PowerState").TextOr("")
	if on := status[0]&1 != 0; (state == "On" || state == "Off") && on != (state == "On") {
		return Failed("Redfish says that the system is %s, IPMI that it is %s", state, map[bool]string{true: "on", false: "off"}[on])
	}
	flags, err := r.IPMIDo(ctx, s, ipmi.Request{NetFn: ipmi.Chassis, Command: 0x09, Data: []byte{5, 0, 0}, Name: "Get System Boot Options"})
	if err == nil {
		err = short("Get System Boot Options", flags, 7)
	}
	if err != nil {
		return judgeIPMI(err)
	}
	device := flags[3] >> 2 & 0x0F
	if flags[2]&0x80 == 0 {
		device = 0
	}
	boot := overrideOf(place.System.At("Boot"))
	if boot.enabled == "Disabled" {
		boot.target = "None"
	}
	if want, known := ipmiTargets[device]; known && !slices.Contains(want, boot.target) {
		return Warned("Redfish boots from %s, IPMI from device %d", boot.target, device)
	}
	return Passed("")
}
