package inventory

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/agent/sys/systest"
)

// frame decodes a frame from hexadecimal digits with blanks.
func frame(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const (
	header     = "0180c200000e 001c73000101 88cc "
	chassis    = "0207 04 001c73000101 "
	port       = "040a 05 45746865726e657431 " + "" // Ethernet1
	ttl        = "0602 0078 "
	name       = "0a06 6c6561662d31 "                     // leaf-1
	pvid       = "fe06 0080c2 01 000a "                   // untagged: 10
	storage100 = "fe0e 0080c2 03 0064 07 73746f72616765 " // 100: storage
	end        = "0000"
)

func TestLLDP(t *testing.T) { // B-250
	for _, tt := range []struct {
		name, frame string
		want        neighbour
		ok          bool
	}{
		{name: "a switch", frame: header + chassis + port + ttl + name + pvid + storage100 + end, ok: true, want: neighbour{
			lldp: job.LLDP{SwitchID: "00:1c:73:00:01:01", PortID: "Ethernet1", SwitchName: "leaf-1"}, untagged: 10, vlans: []job.VLAN{{ID: 100, Name: "storage"}}}},
		{name: "tagged, and without an end", frame: "0180c200000e 001c73000101 8100 0000 88cc " + chassis + "0407 03 001c73000102 " + ttl, ok: true,
			want: neighbour{lldp: job.LLDP{SwitchID: "00:1c:73:00:01:01", PortID: "00:1c:73:00:01:02"}}},
		{name: "network addresses", frame: header + "0206 05 01 c0000201 0412 04 02 20010db8000000000000000000000001 " + end, ok: true,
			want: neighbour{lldp: job.LLDP{SwitchID: "192.0.2.1", PortID: "2001:db8::1"}}},
		{name: "what disturbs is left out", frame: header + chassis + "0404 07 410a42 " + end, ok: true,
			want: neighbour{lldp: job.LLDP{SwitchID: "00:1c:73:00:01:01", PortID: "AB"}}},
		{name: "no VLANs that cannot be", frame: header + chassis + port + "fe06 0080c2 01 0000 fe08 0080c2 03 0fff 01 41 fe08 0080c2 03 0005 09 41 fe04 00120f 01" + end, ok: true,
			want: neighbour{lldp: job.LLDP{SwitchID: "00:1c:73:00:01:01", PortID: "Ethernet1"}}},
		{name: "behind the end nothing counts", frame: header + chassis + port + end + name, ok: true,
			want: neighbour{lldp: job.LLDP{SwitchID: "00:1c:73:00:01:01", PortID: "Ethernet1"}}},
		{name: "no port", frame: header + chassis + ttl + end},
		{name: "broken off", frame: header + chassis + "040a 05 4574"},
		{name: "another protocol", frame: "0180c200000e 001c73000101 0800 " + chassis + port + end},
		{name: "no frame", frame: "0180c2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := parseLLDP(frame(t, tt.frame))
			if ok != tt.ok {
				t.Fatalf("parseLLDP = %+v, %v, want %v", got, ok, tt.ok)
			}
			if d := cmp.Diff(tt.want, got, cmp.AllowUnexported(neighbour{})); ok && d != "" {
				t.Errorf("parseLLDP (-want +got):\n%s", d)
			}
		})
	}
}

// What a switch reports belongs to the NIC that received it, once for each of its
// addresses; NICs without a link are not waited for.
func TestNeighbours(t *testing.T) { // B-250
	s := systest.New(systest.Machine{NICs: []systest.NIC{
		{Name: "eno1", MAC: "02:00:00:00:00:01", Carrier: true, IPs: []string{"192.0.2.1", "2001:db8::1"}, VLANs: []int{100, 7},
			Frames: [][]byte{frame(t, "ffffffffffff 001c73000101 0806 0001"), frame(t, header+chassis+port+ttl+name+pvid+storage100+end)}},
		{Name: "eno2", MAC: "02:00:00:00:00:02", Frames: [][]byte{frame(t, header+chassis+port+end)}},
		{Name: "eno3", MAC: "02:00:00:00:00:03", Carrier: true},
	}})
	h, err := Collect(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	Neighbours(t.Context(), s, h.NICs, 0)
	if h.NICs[0].LLDP != nil {
		t.Errorf("without time the agent heard %+v", h.NICs[0].LLDP)
	}
	l := &listening{System: s}
	Neighbours(t.Context(), l, h.NICs, time.Minute)
	if want := []string{"eno1", "eno3"}; !slices.Equal(l.asked, want) || l.left <= 0 || l.left > time.Minute {
		t.Errorf("it listened on %q for %v, want %q for no more than a minute", l.asked, l.left, want)
	}
	for i, n := range h.NICs[:2] {
		want := job.NIC{
			Name: "eno1", MAC: "02:00:00:00:00:01", Model: "0x0000 0x0000", IP: s.Addresses("eno1")[i], Carrier: true, PCIAddress: "0000:18:00.0",
			VLANs: []job.VLAN{{ID: 7, Name: "eno1.7"}, {ID: 100, Name: "storage"}}, VLANID: 10,
			LLDP: &job.LLDP{SwitchID: "00:1c:73:00:01:01", PortID: "Ethernet1", SwitchName: "leaf-1"},
		}
		if d := cmp.Diff(want, n); d != "" {
			t.Errorf("NIC %d (-want +got):\n%s", i, d)
		}
	}
	if h.NICs[2].LLDP != nil || h.NICs[3].LLDP != nil {
		t.Errorf("others have heard %+v, %+v", h.NICs[2], h.NICs[3])
	}
}

// listening records the parameters and the duration of listening.
type listening struct {
	*systest.System
	asked []string
	left  time.Duration
}

var _ sys.FrameReceiver = (*listening)(nil)

func (l *listening) ReceiveFrames(ctx context.Context, etherType uint16, nics []string) map[string][]byte {
	end, _ := ctx.Deadline()
	l.asked, l.left = nics, time.Until(end)
	return l.System.ReceiveFrames(ctx, etherType, nics)
}

// Whatever frame the agent receives, its report can be stored.
func FuzzLLDP(f *testing.F) {
	f.Add(frame(f, header+chassis+port+ttl+name+pvid+storage100+end))
	f.Add(frame(f, "0180c200000e 001c73000101 8100 0000 88cc "+chassis+port))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, ok := parseLLDP(b)
		if !ok {
			return
		}
		texts := []string{n.lldp.SwitchID, n.lldp.PortID, n.lldp.SwitchName}
		for _, v := range n.vlans {
			texts = append(texts, v.Name)
			if v.ID < 1 || v.ID > maxVLAN {
				t.Errorf("VLAN %d", v.ID)
			}
		}
		if n.untagged < 0 || n.untagged > maxVLAN {
			t.Errorf("untagged VLAN %d", n.untagged)
		}
		for _, s := range texts {
			if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) || len(s) > 2*512 {
				t.Errorf("text %q", s)
			}
		}
	})
}
