package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/rack/control"
)

func TestTypistHandlesTildeCommands(t *testing.T) {
	tests := []struct {
		in, want, messages string
		breaks             int
	}{
		{in: "root\rsecret\r", want: "root\rsecret\r"},
		{in: "~.never", want: ""},
		{in: "who\r~.", want: "who\r"},
		{in: "a~.b\r", want: "a~.b\r"},
		{in: "~~.\r~~", want: "~.\r~"},
		{in: "~x\r", want: "~x\r"},
		{in: "\r~Bs", want: "\rs", breaks: 1},
		{in: "abc\x1dnever", want: "abc"},
		{in: "~\x1dnever", want: ""},
		{in: "~?x", want: "x", messages: escapes},
	}
	for _, tt := range tests {
		for _, slow := range []bool{false, true} {
			breaks, messages := 0, new(strings.Builder)
			in := io.Reader(strings.NewReader(tt.in))
			if slow {
				in = oneByOne{in}
			}
			got, err := io.ReadAll(&typist{in: in, messages: messages, sendBreak: func() error { breaks++; return nil }})
			if err != nil || string(got) != tt.want || messages.String() != tt.messages || breaks != tt.breaks {
				t.Errorf("%q gives %q, %d breaks, %q and %v, want %q, %d, %q", tt.in, got, breaks, messages, err, tt.want, tt.breaks, tt.messages)
			}
		}
	}
	messages := new(strings.Builder)
	typed := &typist{in: strings.NewReader("~B"), messages: messages, sendBreak: func() error { return errors.New("the line is cut") }}
	if _, err := io.ReadAll(typed); err != nil || !strings.Contains(messages.String(), "the line is cut") {
		t.Errorf("a break that fails tells %q, %v", messages, err)
	}
}

// The console says before Enter reaches a server that is off, or has halted, what the key does there.
func TestEnterOnASleepingServerIsExplained(t *testing.T) {
	for _, tt := range []struct {
		power, phase, want string
	}{
		{"Off", "off", "\r\nnode-0 is off, and its keyboard wakes nothing: labctl host power node-0 On\r\n"},
		{"On", "halted", "\r\nnode-0 has found nothing to boot from, and halted: Enter restarts it\r\n"},
		{"On", "running", ""},
	} {
		messages := new(strings.Builder)
		d := control.Detail{Host: control.Host{Name: "node-0", Power: tt.power, Phase: tt.phase}}
		typed := &typist{in: strings.NewReader("ab\r"), messages: messages, asleep: func() string { return asleep(d) }}
		if got, err := io.ReadAll(typed); err != nil || string(got) != "ab\r" || messages.String() != tt.want {
			t.Errorf("Enter on a server that is %s, %s types %q, %v, and says %q, want %q", tt.power, tt.phase, got, err, messages, tt.want)
		}
	}
}

// oneByOne is a reader that returns one byte per Read.
type oneByOne struct{ io.Reader }

func (r oneByOne) Read(b []byte) (int, error) { return r.Reader.Read(b[:min(1, len(b))]) }

func TestWatcherFindsATextAcrossWrites(t *testing.T) {
	found := 0
	var out strings.Builder
	w := &watcher{out: &out, text: []byte("login: "), found: func() { found++ }}
	for _, s := range []string{"node-0 log", "in", ":", " "} {
		if w.seen {
			t.Errorf("%q is found in %q", w.text, out.String())
		}
		if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
			t.Errorf("Write() = %d, %v", n, err)
		}
	}
	if !w.seen || found == 0 || out.String() != "node-0 login: " {
		t.Errorf("found %d times in %q", found, out.String())
	}
}
