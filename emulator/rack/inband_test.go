package rack_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/vm"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// Software on the server that calls the Go API, Host.InBand, has the BMC's state in common
// with clients of IPMI over LAN and of Redfish (statements F8 and I76). A BMC that restarts
// answers none.
func TestInBandIPMISharesStateWithLAN(t *testing.T) {
	l, tools := startTool(t, "- {count: 1}\n")
	h := l.First()
	if code, _, _ := h.InBand().Execute(t.Context(), 0, 0x0a, 0x44, []byte{0, 0, 2, 0, 0, 0, 0, 0x41, 0, 4, 1, 0x30, 1, 9, 0xff, 0xff}); code != 0 {
		t.Errorf("Add SEL Entry = %02x", code)
	}
	if _, body := call(t, l, h, "GET", selEntries+"/1", ""); body["GeneratorId"] != "0x0041" || body["SensorType"] != "Temperature" {
		t.Errorf("Redfish shows %v", body)
	}
	checkSharedState(t, l, tools[0], func(fn, cmd byte, data ...byte) []byte {
		code, answer, ok := h.InBand().Execute(t.Context(), 0, fn, cmd, data)
		if !ok {
			t.Errorf("%02x %02x is not answered", fn, cmd)
		}
		return append([]byte{code}, answer...)
	})
	ask := func(fn, cmd byte, data ...byte) string {
		t.Helper()
		code, answer, ok := h.InBand().Execute(t.Context(), 0, fn, cmd, data)
		return strings.TrimSpace(fmt.Sprintf("%t %02x % x", ok, code, answer))
	}
	if got := ask(0x2c, 0x3e, 0, 2); got != "true c1 00" {
		t.Errorf("an unknown command = %s", got)
	}
	if got := ask(6, 0x33); got != "true 80" {
		t.Errorf("Get Message = %s", got)
	}
	if _, err := h.ApplyBMC(t.Context(), bmc.Restart{Kind: bmc.ForceRestart}); err != nil {
		t.Fatal(err)
	}
	l.Advance(10 * time.Second)
	if got := ask(6, 1); !strings.HasPrefix(got, "false") {
		t.Errorf("a BMC that is down answers %s", got)
	}
}

// checkSharedState checks that the BMC of the rack's first host has one state: what a client
// of IPMI over LAN sets is read in band, and the other way round. inBand returns completion
// code and data of a response.
func checkSharedState(t *testing.T, l *racktest.Rack, lan tool, inBand func(fn, cmd byte, data ...byte) []byte) {
	t.Helper()
	const (
		chassis, app, storage = 0x00, 0x06, 0x0a
		powerOn               = 1 // Get Chassis Status, data byte 1, bit 0
	)
	want := func(name, prefix string, b []byte) {
		t.Helper()
		if got := fmt.Sprintf("% x", b); !strings.HasPrefix(got, prefix) {
			t.Errorf("in band: %s = [%s], want [%s]", name, got, prefix)
		}
	}
	want("Set System Boot Options", "00", inBand(chassis, 0x08, 5, 0x80, 0x04, 0, 0, 0))
	lan.want("01 05 80 04 00 00 00", "raw", "0", "0x09", "5", "0", "0")
	lan.want("", "raw", "0", "0x08", "5", "0x80", "0x08", "0", "0", "0")
	want("Get System Boot Options", "00 01 05 80 08 00 00 00", inBand(chassis, 0x09, 5, 0, 0))

	event := []byte{0, 0, 2, 0, 0, 0, 0, 0x41, 0, 4, 1, 0x30, 1, 9, 0xff, 0xff}
	want("Add SEL Entry", "00", inBand(storage, 0x44, event...))
	lan.want("41 00 04 01 30 01 09", "raw", "0x0a", "0x43", "0", "0", "0xff", "0xff", "0", "0xff") // the last entry
	lan.want("", "raw", "0x0a", "0x44", "0", "0", "2", "0", "0", "0", "0", "0x43", "0", "4", "1", "0x30", "1", "9", "0xff", "0xff")
	if b := inBand(storage, 0x43, 0, 0, 0xff, 0xff, 0, 0xff); len(b) != 19 || b[0] != 0 || b[10] != 0x43 {
		t.Errorf("in band: Get SEL Entry = [% x], want the entry of generator 43h that LAN has added", b)
	}

	want("Chassis Control", "00", inBand(chassis, 0x02, 1))
	l.Advance(20 * time.Second)
	lan.want("Chassis Power is on", "power", "status")
	lan.want("", "power", "off")
	l.Advance(20 * time.Second)
	if b := inBand(chassis, 0x01); len(b) < 2 || b[0] != 0 || b[1]&powerOn != 0 {
		t.Errorf("in band: Get Chassis Status = [% x] after a power off over LAN", b)
	}

	lan.want("", "user", "set", "name", "5", "lab")
	want("Get User Name", "00 6c 61 62 00", inBand(app, 0x46, 5))
}

// A message to the system software LUN waits for the software, and its answer goes
// back to the sender.
func TestSMSLUNReachesSystemSoftware(t *testing.T) {
	l, tools := startTool(t, "- {count: 1}\n")
	bmc := l.First().InBand()
	ask := func(fn, cmd byte, data ...byte) (byte, []byte) {
		code, answer, _ := bmc.Execute(t.Context(), 0, fn, cmd, data)
		return code, answer
	}
	asked := make(chan []byte, 1)
	var software sync.WaitGroup
	defer software.Wait()
	stop := make(chan bool)
	defer close(stop)
	software.Go(func() {
		code, m := ask(6, 0x33)
		for ; code != 0; code, m = ask(6, 0x33) {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond): // software polls
			}
		}
		asked <- m
		// Channel and privilege, handle, destination, function, checksum, source,
		// sequence, command, data, checksum.
		head, body := []byte{m[5], m[3] | 1<<2}, []byte{m[2], m[6], m[7], 0, 0x55}
		sum := func(b []byte) []byte {
			n := byte(0)
			for _, x := range b {
				n += x
			}
			return append(b, -n)
		}
		if code, _ := ask(6, 0x34, append(append([]byte{1, m[1]}, sum(head)...), sum(body)...)...); code != 0 {
			t.Errorf("Send Message = %02X", code)
		}
	})
	tools[0].with("lanplus", "ADMIN", "ADMIN", "-l", "2").want("55", "raw", "0x2e", "1")
	if m := <-asked; len(m) < 8 || m[0] != 0x41 || m[3] != 0x2e<<2|2 || m[7] != 1 {
		t.Errorf("software was asked % x", m)
	}
	if code, _ := ask(6, 0x34, 1, 0x3f, 0x81, 0, 0x7f, 0x20, 0, 1, 0xdf); code != 0x80 {
		t.Errorf("Send Message to a session that is none = %02X", code)
	}
}

// kcs drives the KCS interface of a machine that QEMU emulates (IPMI v2.0 rev 1.1,
// §9.15), by reads and writes of its ports over QMP.
type kcs struct {
	t   *testing.T
	out *json.Encoder
	in  *json.Decoder
}

const (
	kcsData, kcsCommand        = 0xca2, 0xca3
	kcsFull, kcsBusy           = 1 << 0, 1 << 1 // output buffer full; input buffer full
	kcsIdle, kcsRead, kcsWrite = 0, 1, 2
)

// execute carries out a QMP command and returns its result.
func (k *kcs) execute(command string, line string) string {
	k.t.Helper()
	c := map[string]any{"execute": command}
	if line != "" {
		c["arguments"] = map[string]string{"command-line": line}
	}
	if err := k.out.Encode(c); err != nil {
		k.t.Fatal(err)
	}
	for {
		var output struct {
			Return any
			Error  any
		}
		if err := k.in.Decode(&output); err != nil || output.Error != nil {
			k.t.Fatalf("%s %s: %v %v", command, line, output.Error, err)
		}
		if output.Return != nil { // else it is an event
			text, _ := output.Return.(string)
			return text
		}
	}
}

func (k *kcs) input(port int) (value int) {
	k.t.Helper()
	text := k.execute("human-monitor-command", fmt.Sprintf("i /b %#x", port))
	if _, after, ok := strings.Cut(text, "= "); ok {
		if _, err := fmt.Sscanf(after, "0x%x", &value); err == nil {
			return value
		}
	}
	k.t.Fatalf("port %#x: QEMU says %q", port, text)
	return 0
}

func (k *kcs) output(port int, b byte) {
	k.t.Helper()
	k.execute("human-monitor-command", fmt.Sprintf("o /b %#x %#x", port, b))
}

// until waits for bits of the status register, and returns the state.
func (k *kcs) until(mask, want int) int {
	k.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if is := k.input(kcsCommand); is&mask == want {
			return is >> 6
		}
	}
	k.t.Fatal("the system interface does not answer")
	return 0
}

func (k *kcs) write(port int, b byte) {
	k.t.Helper()
	k.output(port, b)
	k.until(kcsBusy, 0)
	if k.input(kcsCommand)&kcsFull != 0 {
		k.input(kcsData)
	}
}

// ask sends a request and returns the response. Both begin with network function and
// LUN.
func (k *kcs) ask(request ...byte) (answer []byte) {
	k.t.Helper()
	last := len(request) - 1
	k.write(kcsCommand, 0x61) // WRITE_START
	for _, b := range request[:last] {
		k.write(kcsData, b)
	}
	k.write(kcsCommand, 0x62) // WRITE_END
	k.output(kcsData, request[last])
	for {
		switch k.until(kcsBusy|kcsFull, kcsFull) {
		case kcsIdle:
			k.input(kcsData)
			return answer
		case kcsRead:
			answer = append(answer, byte(k.input(kcsData)))
			k.output(kcsData, 0x68) // READ
		default:
			k.t.Fatal("the system interface has lost its way")
		}
	}
}

// TestQEMUExternBMC shows statement I75: a machine that QEMU emulates uses a BMC of the rack
// by the VM protocol on a Unix socket. Its KCS interface has the same state as IPMI over LAN.
func TestQEMUExternBMC(t *testing.T) {
	qemu := prerequisites.Need(t, "QEMU")
	l, tools := startTool(t, "- {count: 1}\n")
	h := l.First()
	dir := t.TempDir()
	listen := func(name string) net.Listener {
		t.Helper()
		ln, err := net.Listen("unix", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return ln
	}
	outside, control := listen("bmc"), listen("qmp")
	defer func() { _ = outside.Close() }()
	defer func() { _ = control.Close() }()
	q := exec.CommandContext(t.Context(), qemu, "-machine", "pc,accel=tcg", "-S", "-nodefaults", "-display", "none",
		"-chardev", "socket,id=bmc,reconnect=10,path="+outside.Addr().String(), "-device", "ipmi-bmc-extern,chardev=bmc,id=bmc0", "-device", "isa-ipmi-kcs,bmc=bmc0",
		"-qmp", "unix:"+control.Addr().String())
	var output strings.Builder
	q.Stderr = &output
	if err := q.Start(); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	defer running.Wait()
	defer func() {
		_ = q.Process.Kill()
		_ = q.Wait()
		if t.Failed() {
			t.Log(output.String())
		}
	}()
	for _, ln := range []net.Listener{outside, control} {
		if err := ln.(*net.UnixListener).SetDeadline(time.Now().Add(patience.Of(30 * time.Second))); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := outside.Accept()
	if err != nil {
		t.Fatal(err)
	}
	link := vm.New(conn)
	running.Go(func() {
		defer func() { _ = conn.Close() }()
		_ = link.Serve(t.Context(), h.InBand()) // fails when QEMU is killed at the end
	})
	qmp, err := control.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = qmp.Close() }()
	k := &kcs{t: t, out: json.NewEncoder(qmp), in: json.NewDecoder(qmp)}
	k.execute("qmp_capabilities", "")
	want := func(request, want string) {
		t.Helper()
		var b []byte
		if _, err := fmt.Sscanf(strings.ReplaceAll(request, " ", ""), "%x", &b); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("% x", k.ask(b...)); !strings.HasPrefix(got, want) {
			t.Errorf("[%s] = [%s], want [%s]", request, got, want)
		}
	}
	want("18 01", "1c 01 00 20 01")
	want("10 02 41 04 01 30 01 09 ff ff", "14 02 00") // Platform Event (§29.3)
	if _, body := call(t, l, h, "GET", selEntries+"/1", ""); body["GeneratorId"] != "0x0041" || body["SensorType"] != "Temperature" {
		t.Errorf("Redfish shows %v", body)
	}
	checkSharedState(t, l, tools[0], func(fn, cmd byte, data ...byte) []byte {
		answer := k.ask(append([]byte{fn << 2, cmd}, data...)...)
		if len(answer) < 3 || answer[0] != (fn|1)<<2 || answer[1] != cmd {
			t.Fatalf("KCS: [% x] is no response to %02x %02x", answer, fn, cmd)
		}
		return answer[2:]
	})
	want("28 48", fmt.Sprintf("2c 48 00 % x", binary.LittleEndian.AppendUint32(nil, uint32(h.Now().Unix()))))
	want("18 70", "1c 70 c1")
	if err := link.Do(vm.Attention); err != nil {
		t.Errorf("Attention: %v", err)
	}
	k.until(1<<2, 1<<2) // SMS_ATN
}
