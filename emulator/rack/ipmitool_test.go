package rack_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// tool runs ipmitool against a BMC.
type tool struct {
	t    *testing.T
	at   netip.AddrPort
	kind string // ipmitool interface: lan, lanplus
	user string
	pass string
	more []string // further options
}

// with returns a tool with other options.
func (c tool) with(kind, user, pass string, more ...string) tool {
	c.kind, c.user, c.pass, c.more = kind, user, pass, more
	return c
}

// run returns the output of ipmitool, and whether it has succeeded.
func (c tool) run(args ...string) (string, bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience.Of(30*time.Second))
	defer cancel()
	all := []string{"-I", c.kind, "-H", c.at.Addr().String(), "-p", fmt.Sprint(c.at.Port()), "-U", c.user, "-P", c.pass}
	out, err := exec.CommandContext(ctx, "ipmitool", append(append(all, c.more...), args...)...).CombinedOutput()
	var failed *exec.ExitError
	if err != nil && (!errors.As(err, &failed) || ctx.Err() != nil) {
		c.t.Fatalf("ipmitool %s = %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), err == nil
}

// want runs a command that must succeed and print a text.
func (c tool) want(text string, args ...string) {
	c.t.Helper()
	out, ok := c.run(args...)
	if !ok || !strings.Contains(out, text) {
		c.t.Errorf("ipmitool -I %s -U %s %s %s: succeeded: %t, want %q in\n%s", c.kind, c.user, strings.Join(c.more, " "), strings.Join(args, " "), ok, text, out)
	}
}

// refused runs a command that must fail.
func (c tool) refused(args ...string) {
	c.t.Helper()
	if out, ok := c.run(args...); ok {
		c.t.Errorf("ipmitool -I %s -U %s %s %s succeeds:\n%s", c.kind, c.user, strings.Join(c.more, " "), strings.Join(args, " "), out)
	}
}

// startTool starts a rack with the hosts of a rack file, and returns a tool for each.
func startTool(t *testing.T, hosts string) (*racktest.Rack, []tool) {
	t.Helper()
	prerequisites.Need(t, "ipmitool")
	r, err := rackfile.Parse("rack.yaml", []byte("kind: Lab\naccounts: [{name: ADMIN, password: ADMIN}, {name: op, password: op, role: Operator}]\nhosts:\n"+hosts))
	if err != nil {
		t.Fatal(err)
	}
	l := racktest.Start(t, rack.Config{Rack: &r})
	var tools []tool
	for _, h := range l.Hosts() {
		at, ok := h.IPMI()
		if !ok {
			t.Fatalf("%s has no IPMI", h.Name())
		}
		tools = append(tools, tool{t: t, at: at, kind: "lanplus", user: "ADMIN", pass: "ADMIN"})
	}
	return l, tools
}

func TestIpmitoolCreatesAUser(t *testing.T) {
	l, tools := startTool(t, "- {count: 1}\n")
	c, h := tools[0], l.First()
	lab := c.with("lanplus", "lab", "secret")
	c.want("", "user", "set", "name", "5", "lab")
	c.want("successful", "user", "set", "password", "5", "secret", "20")
	c.want("successful", "user", "priv", "5", "4", "1")
	lab.refused("mc", "guid")
	c.want("", "user", "enable", "5")
	lab.want("System GUID", "mc", "guid")
	lab.with("lan", "lab", "secret").refused("mc", "guid")
	c.want("Success", "user", "test", "5", "20", "secret")
	c.refused("user", "test", "5", "16", "secret")
	if a, ok := h.Account("lab"); !ok || a.ID != "4" || a.Role != bmc.Administrator || !a.Enabled {
		t.Errorf("account = %+v, %t", a, ok)
	}
	c.want("successful", "channel", "setaccess", "1", "5", "privilege=2")
	lab.refused("mc", "guid")
	lab.with("lanplus", "lab", "secret", "-L", "USER").want("System GUID", "mc", "guid")
	if _, err := h.ApplyBMC(t.Context(), bmc.ChangeAccount{ID: "4", AccountChange: bmc.AccountChange{Enabled: new(false)}}); err != nil {
		t.Fatal(err)
	}
	lab.with("lanplus", "lab", "secret", "-L", "USER").refused("mc", "guid")
	out, _ := c.run("user", "list", "1")
	if rows := strings.Count(strings.TrimSpace(out), "\n"); rows != 16 || !strings.Contains(out, "lab") {
		t.Errorf("user list has %d rows:\n%s", rows, out)
	}
}

func TestIpmitoolSetsTheNetwork(t *testing.T) {
	l, tools := startTool(t, "- {count: 1}\n")
	c, h := tools[0], l.First()
	was := h.Address()
	c.want("", "lan", "set", "1", "ipsrc", "static")
	c.want("192.0.2.9", "lan", "set", "1", "ipaddr", "192.0.2.9")
	c.want("255.255.255.0", "lan", "set", "1", "netmask", "255.255.255.0")
	c.want("192.0.2.1", "lan", "set", "1", "defgw", "ipaddr", "192.0.2.1")
	c.want("", "lan", "set", "1", "vlan", "id", "100")
	c.want("", "lan6", "set", "1", "enables", "both")
	c.want("", "lan6", "set", "1", "static_addr", "0", "enable", "2001:db8::5", "64")
	for _, want := range []string{"IP Address              : 192.0.2.9", "Static Address", "Default Gateway IP      : 192.0.2.1", "802.1q VLAN ID          : 100"} {
		c.want(want, "lan", "print", "1")
	}
	c.want("2001:db8::5/64", "lan6", "print", "1")
	n := h.BMC().Network()
	if n.DHCP || n.Static.Addr.String() != "192.0.2.9" || n.Static.Reach != bmc.AtDefaultAddress || n.VLAN.ID != 100 || len(n.V6.Static) != 1 {
		t.Errorf("network = %+v", n)
	}
	if now := h.Address(); now != was {
		t.Errorf("the BMC has moved from %s to %s", was, now)
	}
	// The BMC answers at its new address, which the rack can have, and is reachable
	// as before.
	c.want("127.99.0.7", "lan", "set", "1", "ipaddr", "127.99.0.7")
	there := c
	there.at = netip.AddrPortFrom(netip.MustParseAddr("127.99.0.7"), c.at.Port())
	for _, at := range []tool{c, there} {
		at.want("IP Address              : 127.99.0.7", "lan", "print", "1")
	}
	c.want("", "lan", "set", "1", "ipsrc", "dhcp")
	c.want("IP Address              : "+was.Addr().String(), "lan", "print", "1")
}

// For programs that search for insecure BMCs.
func TestCipherSuiteZeroAndNullUser(t *testing.T) {
	const key = "0123456789abcdef0123"
	_, tools := startTool(t, "- {count: 1}\n- {count: 1, ipmi: {suites: [0, 1, 2, 3, 15, 16, 17]}}\n- {count: 1, ipmi: {v15: [md5, password]}}\n- {count: 1, ipmi: {kg: "+key+"}}\n")
	plain, weak, old, keyed := tools[0], tools[1], tools[2], tools[3]
	for _, id := range []string{"0", "1", "2", "15", "16"} {
		plain.with("lanplus", "ADMIN", "ADMIN", "-C", id).refused("mc", "guid")
	}
	plain.want("RMCP+ Cipher Suites     : 3,17\n", "lan", "print", "1")
	weak.want("RMCP+ Cipher Suites     : 0,1,2,3,15,16,17\n", "lan", "print", "1")
	weak.want("Cipher Suite Priv Max   : aaaaXXXXXXXXXXX\n", "lan", "print", "1")
	for _, id := range []string{"1", "2", "3", "17"} {
		weak.with("lanplus", "ADMIN", "ADMIN", "-C", id).want("System GUID", "mc", "guid")
		weak.with("lanplus", "ADMIN", "wrong", "-C", id).refused("mc", "guid")
	}
	// Cipher suite 0 needs no password.
	weak.with("lanplus", "ADMIN", "wrong", "-C", "0").want("System GUID", "mc", "guid")

	plain.with("lan", "ADMIN", "ADMIN", "-A", "MD5").refused("mc", "guid")
	for _, kind := range []string{"MD5", "PASSWORD"} {
		old.with("lan", "ADMIN", "ADMIN", "-A", kind).want("System GUID", "mc", "guid")
		old.with("lan", "ADMIN", "wrong", "-A", kind, "-R", "1", "-N", "1").refused("mc", "guid")
	}
	old.with("lan", "ADMIN", "ADMIN", "-A", "NONE").refused("mc", "guid")
	old.want("System GUID", "mc", "guid")

	keyed.refused("mc", "guid")
	keyed.with("lanplus", "ADMIN", "ADMIN", "-k", "another").refused("mc", "guid")
	keyed.with("lanplus", "ADMIN", "ADMIN", "-k", key).want("System GUID", "mc", "guid")
	plain.with("lanplus", "ADMIN", "ADMIN", "-k", key).refused("mc", "guid")
}

func TestIpmitoolRestartsTheBMC(t *testing.T) {
	l, tools := startTool(t, "- {count: 1}\n")
	c := tools[0]
	c.want("Sent cold reset command to MC", "mc", "reset", "cold")
	l.AwaitCommand("Cold Reset")
	l.Advance(10 * time.Second)
	c.with("lanplus", "ADMIN", "ADMIN", "-R", "1", "-N", "1").refused("mc", "guid")
	l.Advance(time.Minute)
	c.want("System GUID", "mc", "guid")
	c.want("Sent warm reset command to MC", "mc", "reset", "warm")
}

// Redfish shows that IPMI is off, and can switch it on.
func TestIpmitoolDisablesIPMI(t *testing.T) {
	l, tools := startTool(t, "- {count: 1}\n")
	c, h := tools[0], l.First()
	c.want("", "lan", "set", "1", "access", "off")
	n := h.BMC().Network()
	if n.IPMI.On {
		t.Fatal("IPMI is on after access was switched off")
	}
	c.with("lanplus", "ADMIN", "ADMIN", "-R", "1", "-N", "1").refused("mc", "guid")
	n.IPMI.On = true
	if _, err := h.ApplyBMC(t.Context(), bmc.SetNetwork{Network: n}); err != nil {
		t.Fatal(err)
	}
	c.want("always available", "channel", "info", "1")
}

// A change through one protocol is visible in the other at once.
func TestRedfishAndIpmitoolAgree(t *testing.T) {
	l, tools := startTool(t, "- {count: 1}\n")
	c, h := tools[0], l.First()
	redfish := func(method, path, body string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, h.URL()+"/redfish/v1/"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("ADMIN", "ADMIN")
		req.Header.Set("Content-Type", "application/json")
		resp, err := l.Client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		out, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode >= http.StatusMultipleChoices {
			t.Fatalf("%s %s = %d, %v\n%s", method, path, resp.StatusCode, err, out)
		}
		return string(out)
	}
	shows := func(path, want string) {
		t.Helper()
		if got := redfish(http.MethodGet, path, ""); !strings.Contains(got, want) {
			t.Errorf("GET %s = %s\nwant %s", path, got, want)
		}
	}
	const nic, system = "Managers/1/EthernetInterfaces/1", "Systems/1"
	c.want("", "mc", "setsysinfo", "system_name", "db-17")
	shows(system, `"HostName":"db-17"`)
	redfish(http.MethodPatch, system, `{"HostName":"db-18"}`)
	c.want("db-18", "mc", "getsysinfo", "system_name")
	c.want(h.Machine().BIOSVersion(), "mc", "getsysinfo", "system_fw_version")

	redfish(http.MethodPost, "AccountService/Accounts", `{"UserName":"red","Password":"red-secret","RoleId":"Operator"}`)
	c.with("lanplus", "red", "red-secret", "-L", "OPERATOR").want("System GUID", "mc", "guid")
	c.want("successful", "user", "priv", "4", "4", "1")
	shows("AccountService/Accounts/3", `"RoleId":"Administrator"`)
	c.want("", "user", "disable", "4")
	shows("AccountService/Accounts/3", `"Enabled":false`)
	c.want("", "user", "set", "name", "4", "blue")
	shows("AccountService/Accounts/3", `"UserName":"blue"`)

	c.want("", "lan", "set", "1", "ipsrc", "static")
	c.want("192.0.2.9", "lan", "set", "1", "ipaddr", "192.0.2.9")
	c.want("", "lan", "set", "1", "vlan", "id", "100")
	shows(nic, `"Address":"192.0.2.9","Gateway":null,"SubnetMask":"255.0.0.0"`) // element of IPv4StaticAddresses
	shows(nic, `"DHCPEnabled":false`)
	shows(nic, `"VLANEnable":true,"VLANId":100`)
	redfish(http.MethodPatch, nic, `{"VLAN":{"VLANId":200},"IPv4StaticAddresses":[{"Gateway":"192.0.2.254"}]}`)
	c.want("Default Gateway IP      : 192.0.2.254", "lan", "print", "1")
	c.want("802.1q VLAN ID          : 200", "lan", "print", "1")
	redfish(http.MethodPatch, nic, `{"DHCPv4":{"DHCPEnabled":true},"IPv4StaticAddresses":[null]}`)
	c.want("IP Address Source       : DHCP Address", "lan", "print", "1")

	c.want("", "lan", "set", "1", "bad_pass_thresh", "3", "0", "6", "60")
	shows("AccountService", `"AccountLockoutThreshold":3`)
	shows("AccountService", `"AccountLockoutDuration":600`)
	redfish(http.MethodPatch, "AccountService", `{"AccountLockoutThreshold":7}`)
	c.want("Bad Password Threshold  : 7", "lan", "print", "1")
}

func TestIPMICommandsAreCounted(t *testing.T) {
	l, tools := startTool(t, "- {count: 1}\n")
	for range 2 {
		tools[0].want("System GUID", "mc", "guid")
	}
	kind := rack.RequestKind{Dialect: "generic", Command: true, Method: "Get System GUID"}
	if got := l.RequestKinds()[kind]; got != 2 {
		t.Errorf("RequestKinds()[%+v] = %d, want 2 of %v", kind, got, l.RequestKinds())
	}
	if got := l.IPMISessions(); got != 2 {
		t.Errorf("IPMISessions() = %d, want 2", got)
	}
}
