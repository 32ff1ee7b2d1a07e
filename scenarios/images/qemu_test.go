package images

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/controller/netboot"
	"github.com/metalab-dev/metalab/scenarios/patience"
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
			if err := boot(patience.Within(t, boots), qemu, args, tt.line); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// boots is how long a boot may take. With an emulated processor (TCG) it takes a minute on a
// machine at rest.
const boots = 5 * time.Minute

// boot runs QEMU until its serial port shows the line. Its error has the end of what the
// port has shown.
func boot(ctx context.Context, qemu string, args []string, line string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, qemu, args...)
	console, stdout, err := os.Pipe()
	if err != nil {
		return err
	}
	defer console.Close()
	cmd.Stdout, cmd.Stderr = stdout, stdout
	if err := errors.Join(cmd.Start(), stdout.Close()); err != nil {
		return fmt.Errorf("%s: %w", qemu, err)
	}
	const most = 60 // lines
	var shown []string
	found := false
	for s := bufio.NewScanner(console); !found && s.Scan(); {
		if shown = append(shown, s.Text()); len(shown) > most {
			shown = shown[1:]
		}
		found = strings.Contains(s.Text(), line)
	}
	why := context.Cause(ctx) // nil: QEMU has ended by itself
	cancel()
	if err = cmd.Wait(); found { // killed by us
		return nil
	}
	return fmt.Errorf("%s %q has ended (%w) before it showed %q: %w; the end of its console:\n%s", qemu, args, cmp.Or(why, errEnded), line, err, strings.Join(shown, "\n"))
}

var errEnded = errors.New("by itself")

func TestBootThatStopsShowsTheEndOfTheConsole(t *testing.T) {
	const begin = "echo loader; echo kernel panic; "
	check := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasSuffix(err.Error(), "console:\nloader\nkernel panic") {
			t.Errorf("boot() = %v, want %s and the console", err, want)
		}
	}
	check(boot(t.Context(), "sh", []string{"-c", begin}, "login:"), `(by itself) before it showed "login:"`)

	ctx, cancel := context.WithCancelCause(t.Context())
	printed := filepath.Join(t.TempDir(), "printed")
	go func() {
		err := patience.Until(t.Context(), patience.Limit(), func(context.Context) (bool, string, error) {
			_, err := os.Stat(printed)
			return err == nil, fmt.Sprint(err), nil
		})
		cancel(cmp.Or(err, patience.ErrLimit)) // as Within does
	}()
	check(boot(ctx, "sh", []string{"-c", begin + `: >"$0"; exec sleep 1d`, printed}, "login:"), "(patience has run out) before it showed")

	if err := boot(t.Context(), "sh", []string{"-c", "echo loader; echo login:; exec sleep 1d"}, "login:"); err != nil {
		t.Errorf("boot() = %v, want none", err)
	}
}
