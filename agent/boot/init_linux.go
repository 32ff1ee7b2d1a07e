package boot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// IsFirstProcess reports whether this process is the first of a ramdisk, for which
// Init is.
func IsFirstProcess() bool {
	_, err := os.Stat(IndexPath)
	return os.Getpid() == 1 && err == nil
}

// mounts lists the kernel's file systems, in order.
var mounts = []struct{ kind, at, options string }{
	{"proc", "/proc", ""}, {"sysfs", "/sys", ""}, {"devtmpfs", "/dev", "mode=0755"}, {"tmpfs", "/run", "mode=0755"}, {"tmpfs", "/tmp", ""},
}

// Mount mounts the kernel's file systems: before that there is neither a command
// line to read nor a console to write to.
func Mount() error {
	for _, m := range mounts {
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return fmt.Errorf("boot: %w", err)
		}
		if err := unix.Mount(m.kind, m.at, m.kind, unix.MS_NOSUID, m.options); err != nil && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("boot: mount %s: %w", m.at, err)
		}
	}
	return nil
}

// The intervals of the search for devices. Drivers make more devices appear: a bus
// has devices, and a disk takes time to identify itself.
const (
	lookAgain = 200 * time.Millisecond
	lookFor   = 2 * time.Minute
	linkWait  = 10 * time.Minute // for a NIC to get an address: switches take their time
)

// Init loads drivers and returns when a NIC has an address, or when ctx ends.
// Loading and DHCP continue in the background until ctx ends.
func Init(ctx context.Context, log *slog.Logger) error {
	var x Index
	b, err := os.ReadFile(IndexPath)
	if err == nil {
		err = json.Unmarshal(b, &x)
	}
	if err != nil {
		return fmt.Errorf("boot: %s: %w", IndexPath, err)
	}
	d := drivers{index: x, log: log, tried: map[string]bool{}, asked: map[string]bool{}}
	d.loadNew()
	go d.watch(ctx)
	// DHCP and TLS need random numbers and do not wait for them. The kernel
	// gathers them for a caller that does.
	if _, err := unix.Getrandom(make([]byte, 1), 0); err != nil {
		return fmt.Errorf("boot: random numbers: %w", err)
	}
	return network(ctx, log)
}

// drivers loads drivers, in one goroutine at a time.
type drivers struct {
	index Index
	log   *slog.Logger
	asked map[string]bool // devices by modalias
	tried map[string]bool // names of drivers
}

// watch searches for devices that appear later. It ends with the machine, like
// Init's caller.
func (d *drivers) watch(ctx context.Context) {
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	end := time.NewTimer(lookFor)
	defer end.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-end.C:
			return
		case <-again.C:
			d.loadNew()
		}
	}
}

// loadNew loads the drivers of new devices.
func (d *drivers) loadNew() {
	err := filepath.WalkDir("/sys/devices", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.Name() != "modalias" {
			return nil //nolint:nilerr // devices come and go
		}
		b, err := os.ReadFile(name)
		device := strings.TrimSpace(string(b))
		if err != nil || d.asked[device] {
			return nil //nolint:nilerr // as above
		}
		d.asked[device] = true
		for _, m := range d.index.For(device) {
			for _, each := range d.index.Order(m) {
				d.load(each)
			}
		}
		return nil
	})
	if err != nil {
		d.log.Warn("devices cannot be listed", "error", err)
	}
}

func (d *drivers) load(name string) {
	if d.tried[name] {
		return
	}
	d.tried[name] = true
	f, err := os.Open(filepath.Join(ModuleDir, name+".ko"))
	if err == nil {
		err = unix.FinitModule(int(f.Fd()), "", 0)
		f.Close()
	}
	if err != nil && !errors.Is(err, unix.EEXIST) {
		d.log.Warn("driver not loaded", "driver", name, "error", err)
	}
}
