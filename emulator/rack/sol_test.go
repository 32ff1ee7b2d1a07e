package rack_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// talk is a program with its own terminal.
type talk struct {
	t    *testing.T
	in   io.Writer
	out  chan string
	got  string // since the last expect
	all  string
	cmd  *exec.Cmd
	done context.CancelFunc
}

// converse runs a program on a terminal. It skips the test where there are no
// pseudo-terminals.
func converse(t *testing.T, program string, args ...string) *talk {
	t.Helper()
	prerequisites.Need(t, "script")
	prerequisites.Need(t, program)
	line := "exec " + program
	for _, a := range args {
		line += " '" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	ctx, done := context.WithTimeout(t.Context(), patience.Of(2*time.Minute))
	c := &talk{t: t, out: make(chan string, 100), done: done, cmd: exec.CommandContext(ctx, "script", "-qec", line, "/dev/null")}
	in, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.in = in
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.out)
		buf := make([]byte, 4096)
		for {
			n, err := out.Read(buf)
			if n > 0 {
				c.out <- string(buf[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { c.done(); c.wait() })
	return c
}

// wait reads until the program has ended, and returns everything that it printed.
func (c *talk) wait() string {
	for s := range c.out {
		c.all += s
	}
	_ = c.cmd.Wait() // its exit status does not matter
	return c.all
}

// kill kills the program.
func (c *talk) kill() {
	c.t.Helper()
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", c.cmd.Process.Pid))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, child := range strings.Fields(string(children)) {
		pid, err := strconv.Atoi(child)
		if err != nil {
			c.t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			c.t.Fatal(err)
		}
	}
	c.wait()
}

// expect waits until the program has printed these texts in this order.
func (c *talk) expect(want ...string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience.Limit())
	defer cancel()
	for _, w := range want {
		for !strings.Contains(c.got, w) {
			select {
			case s, ok := <-c.out:
				if !ok {
					c.t.Fatalf("it has ended before %q; it printed\n%q", w, c.all)
				}
				c.got += s
				c.all += s
			case <-ctx.Done():
				c.t.Fatalf("it does not print %q; it printed\n%q, since the last\n%q", w, c.all, c.got)
			}
		}
		_, c.got, _ = strings.Cut(c.got, w)
	}
}

func (c *talk) say(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, s); err != nil {
		c.t.Fatal(err)
	}
}

// clients are the command lines for a BMC's address and credentials.
func ipmitool(t *testing.T, l *racktest.Rack, h *rack.Host, args ...string) []string {
	user, password := l.Credentials(h)
	at, ok := h.IPMI()
	if !ok {
		t.Fatal("IPMI is off")
	}
	return append([]string{"-I", "lanplus", "-H", at.Addr().String(), "-p", fmt.Sprint(at.Port()), "-U", user, "-P", password}, args...)
}

// once runs ipmitool for one command.
func once(t *testing.T, l *racktest.Rack, h *rack.Host, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ipmitool", ipmitool(t, l, h, args...)...).CombinedOutput()
	if err != nil {
		return string(out) + err.Error()
	}
	return string(out)
}

// TestIpmitoolSOLActivate shows statements C11 and F8.
func TestIpmitoolSOLActivate(t *testing.T) {
	var d diary
	l := racktest.Start(t, rack.Config{Events: d.event})
	h := l.First()
	c := converse(t, "ipmitool", ipmitool(t, l, h, "sol", "activate")...)
	c.expect("[SOL Session operational.")
	c.say("x") // no client receives it
	power(t, h, machine.ResetOn)
	l.Advance(3 * time.Minute) // longer than an idle session lasts
	c.expect("Serial number "+h.Machine().Identity.Serial, "Booting from drive 0", "ok", "login: ")
	c.say("root\r")
	c.expect("root", "Password: ")
	c.say("wrong\r")
	c.expect("Login incorrect", "login: ")
	if got := once(t, l, h, "sol", "activate"); !strings.Contains(got, "SOL payload already active on another session") {
		t.Errorf("a second client gets %q", got)
	}
	for i := range 300 { // more than the console remembers, in parts
		apply(t, h, machine.Print{Boot: 1, Text: fmt.Sprintf("line %d\n", i)})
	}
	for i := range 300 {
		c.expect(fmt.Sprintf("line %d\r\n", i))
	}
	apply(t, h, machine.Print{Boot: 1, Text: "the end\n"})
	c.expect("the end")
	c.say("\r")
	c.expect("login: ")
	c.say("~B")
	c.expect("[send break]")
	c.say("s")
	c.expect("sysrq: Emergency Sync")
	c.say("\r~.")
	if got := c.wait(); !strings.Contains(got, "terminated ipmitool") {
		t.Errorf("at the end it printed %q", got)
	}
	next := converse(t, "ipmitool", ipmitool(t, l, h, "sol", "activate")...)
	next.expect("[SOL Session operational.")
	next.say("\r")
	next.expect("login: ")
	if got := once(t, l, h, "sol", "deactivate"); got != "" {
		t.Errorf("deactivate printed %q", got)
	}
	next.say("x") // which nobody acknowledges any more
	if got := next.wait(); !strings.Contains(got, "SOL session closed by BMC") {
		t.Errorf("one that has lost it to another prints %q", got)
	}
}

func TestFreeIPMIConsole(t *testing.T) {
	var d diary
	l := racktest.Start(t, rack.Config{Events: d.event, Listen: fmt.Sprintf("127.0.0.1:%d", racktest.Ports(t))})
	h := l.First()
	power(t, h, machine.ResetOn)
	l.Advance(3 * time.Minute)
	user, password := l.Credentials(h)
	at, _ := h.IPMI()
	c := converse(t, "ipmiconsole", "-h", at.String(), "-u", user, "-p", password, "-l", "ADMIN", "-I", "17")
	c.expect("[SOL established]", "login: ")
	c.say("root\r")
	c.expect("root", "Password: ")
	power(t, h, machine.ForceOff)
	l.Advance(time.Minute)
	c.say("hello")
	power(t, h, machine.ResetOn)
	l.Advance(time.Minute)
	c.expect("Serial number " + h.Machine().Identity.Serial)
	c.say("&.")
	if got := c.wait(); !strings.Contains(got, "closing the connection") {
		t.Errorf("at the end it printed %q", got)
	}
}

func TestIpmitoolSetsSOLParameters(t *testing.T) {
	prerequisites.Need(t, "ipmitool")
	l := racktest.Start(t, rack.Config{})
	h := l.First()
	info := once(t, l, h, "sol", "info", "1")
	for _, want := range []string{
		"Set in progress                 : set-complete", "Enabled                         : true", "Force Encryption                : true",
		"Privilege Level                 : OPERATOR", "Character Accumulate Level (ms) : 60", "Character Send Threshold        : 96",
		"Retry Count                     : 7", "Retry Interval (ms)             : 500", "Volatile Bit Rate (kbps)        : 115.2",
		"Payload Channel                 : 1 (0x01)", "Payload Port                    : ",
	} {
		if !strings.Contains(info, want) {
			t.Errorf("sol info has no line %q:\n%s", want, info)
		}
	}
	for _, bad := range []string{"not supported", "Error", "failed"} {
		if strings.Contains(info, bad) {
			t.Errorf("sol info says %q:\n%s", bad, info)
		}
	}
	if got := once(t, l, h, "sol", "set", "retry-count", "3", "1"); got != "" {
		t.Errorf("sol set printed %q", got)
	}
	if got := h.BMC().SOL().Retries; got != 3 {
		t.Errorf("retries = %d, want 3", got)
	}
	if got := once(t, l, h, "sol", "payload", "status", "1", "2"); !strings.Contains(got, "enabled") {
		t.Errorf("sol payload status printed %q", got)
	}
	once(t, l, h, "sol", "payload", "disable", "1", "2")
	if got := once(t, l, h, "sol", "activate"); !strings.Contains(got, "SOL payload disabled") {
		t.Errorf("without the payload activate printed %q", got)
	}
}

// forward passes datagrams to a BMC from another port, as the port map of a
// container does. It serves one client at a time.
func forward(t *testing.T, to netip.AddrPort) netip.AddrPort {
	t.Helper()
	front, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	back, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() { front.Close(); back.Close(); running.Wait() })
	var client atomic.Pointer[netip.AddrPort]
	running.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, from, err := front.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			client.Store(&from)
			_, _ = back.Write(buf[:n]) // lost packets are sent again
		}
	})
	running.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, err := back.Read(buf)
			if err != nil {
				return
			}
			_, _ = front.WriteToUDPAddrPort(buf[:n], *client.Load())
		}
	})
	return front.LocalAddr().(*net.UDPAddr).AddrPort()
}

// Behind a port map, the BMC must advertise the port that its clients reach.
func TestSOLAdvertisesItsPort(t *testing.T) {
	var d diary
	l := racktest.Start(t, rack.Config{Events: d.event})
	h := l.First()
	at, _ := h.IPMI()
	front := forward(t, at)
	set := *h.BMC().SOL()
	set.Port = front.Port()
	if _, err := h.ApplyBMC(t.Context(), bmc.SetSOL{SOL: set}); err != nil {
		t.Fatal(err)
	}
	user, password := l.Credentials(h)
	c := converse(t, "ipmitool", "-I", "lanplus", "-H", "127.0.0.1", "-p", fmt.Sprint(front.Port()), "-U", user, "-P", password, "sol", "activate")
	c.expect("[SOL Session operational.")
	power(t, h, machine.ResetOn)
	l.Advance(3 * time.Minute)
	c.expect("login: ")
}

// The console is free when the session of a killed client has ended.
func TestSOLPayloadIsFreeAfterClientIsKilled(t *testing.T) {
	var d diary
	l := racktest.Start(t, rack.Config{Events: d.event})
	h := l.First()
	set := *h.BMC().SOL()
	set.Retries, set.Interval = 2, 5 // so that the BMC soon gives up
	if _, err := h.ApplyBMC(t.Context(), bmc.SetSOL{SOL: set}); err != nil {
		t.Fatal(err)
	}
	c := converse(t, "ipmitool", ipmitool(t, l, h, "sol", "activate")...)
	c.expect("[SOL Session operational.")
	c.kill()
	if got := once(t, l, h, "sol", "activate"); !strings.Contains(got, "already active") {
		t.Errorf("at once after that a second client gets %q", got)
	}
	l.Advance(time.Minute)
	deadline, cancel := context.WithTimeout(t.Context(), patience.Limit())
	defer cancel()
	for strings.Contains(once(t, l, h, "raw", "6", "0x4a", "1"), "01 01 00") {
		if deadline.Err() != nil {
			t.Fatal("the console is not freed")
		}
	}
}
