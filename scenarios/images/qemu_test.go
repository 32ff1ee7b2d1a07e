package images

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/controller/netboot"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// isoLine is the end of what an agent's medium without a kernel prints.
const isoLine = "nothing to run on this server."

// legacy are options with which SeaBIOS prints to the serial port.
var legacy = []string{"-m", "64", "-nographic", "-machine", "graphics=off"}

// TestQEMUBoots boots the images in QEMU, with SeaBIOS and, where it is installed,
// EDK II. QEMU emulates the CPU in software: it runs anywhere, in seconds.
func TestQEMUBoots(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: QEMU takes seconds")
	}
	qemu := prerequisites.Need(t, "QEMU")
	raw := build(t)
	qcow, err := QCOW2(raw)
	if err != nil {
		t.Fatal(err)
	}
	iso, err := netboot.BuildISO(map[string][]byte{"/metalab/agent.json": []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		file    string
		content []byte
		drive   string
		uefi    bool
		line    string
	}{
		{"raw legacy", "a.img", raw, "format=raw,media=disk", false, bootLine},
		{"raw UEFI", "a.img", raw, "format=raw,media=disk", true, bootLine},
		{"qcow2 legacy", "a.qcow2", qcow, "format=qcow2,media=disk", false, bootLine},
		{"agent medium legacy", "a.iso", iso, "format=raw,media=cdrom,readonly=on", false, isoLine},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := legacy
			if tt.uefi {
				args = []string{"-m", "256", "-display", "none", "-drive", "if=pflash,format=raw,readonly=on,file=" + prerequisites.Need(t, "OVMF")}
			}
			path := writeFile(t, tt.file, tt.content)
			args = append(args[:len(args):len(args)], "-accel", "tcg", "-nic", "none", "-monitor", "none",
				"-serial", "stdio", "-no-reboot", "-drive", "if=ide,"+tt.drive+",file="+strings.ReplaceAll(path, ",", ",,")) // as QEMU quotes it
			boot(t, qemu, args, tt.line)
		})
	}
}

// boot runs QEMU until its serial port shows the line.
func boot(t *testing.T, qemu string, args []string, line string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, qemu, args...)
	console, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer console.Close()
	cmd.Stdout, cmd.Stderr = stdout, stdout
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", qemu, err)
	}
	if err := stdout.Close(); err != nil {
		t.Error(err)
	}
	var shown []string
	found := false
	for s := bufio.NewScanner(console); !found && s.Scan(); {
		shown = append(shown, s.Text())
		found = strings.Contains(s.Text(), line)
	}
	cancel()
	err = cmd.Wait() // killed by us if all went well
	if !found {
		t.Fatalf("%s %q ended with %v before it showed %q; console:\n%s", qemu, args, err, line, strings.Join(shown, "\n"))
	}
}
