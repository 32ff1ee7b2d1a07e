package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/guest/sandbox"
)

// This file gives the control API files and commands of servers' operating systems.

// bootFixes advise the user of a server that runs no operating system, by its phase.
var bootFixes = map[machine.Phase]string{
	machine.Starting: "it boots: wait a moment", machine.POST: "it boots: wait a moment", machine.Selecting: "it boots: wait a moment", machine.Loading: "it boots: wait a moment",
	machine.Halted: "it found none to boot: give it an image", machine.InSetup: "it is in its set-up: leave that, or reset it",
	machine.Crashed: "it has crashed: reset it", machine.Stopping: "it shuts down: switch it on then", machine.Cutting: "its power goes off: switch it on then",
}

// of returns the system that a server runs, when its data source was applied.
func (y *systems) of(ctx context.Context, h *rack.Host) (*system, error) {
	v := h.Machine()
	os := v.OS
	if os == nil {
		return nil, fmt.Errorf("%w: %s runs no operating system: %s", machine.ErrPower, h.Name(), cmp.Or(bootFixes[v.Phase], "switch it on"))
	}
	y.mu.Lock()
	x := y.running[h.Name()]
	y.mu.Unlock()
	if x == nil || x.os.Boot != os.Boot {
		return nil, fmt.Errorf("%w: %s runs the system %q: only systems on a disk and live systems have files and commands", machine.ErrPower, h.Name(), os.Name)
	}
	select {
	case <-x.configured:
		return x, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// files lists a directory of the system that a server runs, or returns a file.
func (y *systems) files(ctx context.Context, h *rack.Host, name string) (control.Files, error) {
	x, err := y.of(ctx, h)
	if err != nil {
		return control.Files{}, err
	}
	n, err := x.Stat(name)
	if err != nil {
		return control.Files{}, err
	}
	if !n.Mode.IsDir() {
		content, err := x.ReadFile(name)
		return control.Files{Path: name, File: true, Content: content}, err
	}
	entries, err := x.ReadDir(name)
	if err != nil {
		return control.Files{}, err
	}
	users, groups := namesOf(x, "etc/passwd"), namesOf(x, "etc/group")
	out := control.Files{Path: name, Entries: []control.FileEntry{}}
	for _, e := range entries {
		out.Entries = append(out.Entries, control.FileEntry{
			Name: e.Name, Dir: e.Mode.IsDir(), Link: e.Link, Mode: e.Mode.String(), Owner: users(e.UID), Group: groups(e.GID), Size: e.Size,
		})
	}
	return out, nil
}

// namesOf returns the names of the IDs in /etc/passwd or /etc/group of a system.
func namesOf(x *system, file string) func(id int) string {
	names := map[int]string{}
	if b, err := x.ReadFile(file); err == nil {
		for name, id := range accountLines(string(b)) {
			names[id] = name
		}
	}
	return func(id int) string {
		if name, ok := names[id]; ok {
			return name
		}
		return fmt.Sprint(id)
	}
}

// changes compares the files of the system that a server runs with those of its image.
func (y *systems) changes(ctx context.Context, h *rack.Host) ([]control.FileChange, error) {
	x, err := y.of(ctx, h)
	if err != nil {
		return nil, err
	}
	all, err := x.Changes()
	out := []control.FileChange{}
	for _, c := range all {
		out = append(out, control.FileChange{Path: "/" + c.Name, Change: c.What})
	}
	return out, err
}

// putFile writes a file, directory or link of the system that a server runs. A path that ends in
// a slash is an error: it names no file.
func (y *systems) putFile(ctx context.Context, h *rack.Host, f control.File) error {
	x, err := y.of(ctx, h)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(f.Path, "/") || strings.HasSuffix(f.Path, "/") {
		return fmt.Errorf("path %q: give the absolute path of a file", f.Path)
	}
	n := sandbox.Node{Mode: f.Mode, Content: f.Content, Link: f.Link}
	if err := x.Put(sandbox.Tree{sandbox.Clean(path.Clean(f.Path)): n}); err != nil {
		return err
	}
	return x.CheckPaths()
}

// reset removes what the system that a server runs has stored since its installation, and restarts
// the server. It needs nothing of the system, whose files may be unreadable.
func (y *systems) reset(ctx context.Context, h *rack.Host) error {
	defer y.clock.Enter()()
	y.mu.Lock()
	x := y.running[h.Name()]
	y.mu.Unlock()
	running := h.Machine().OS
	switch {
	case running == nil:
		return fmt.Errorf("%w: %s runs no operating system: %s", machine.ErrPower, h.Name(), cmp.Or(bootFixes[h.Machine().Phase], "switch it on"))
	case x == nil || x.os.Boot != running.Boot || running.Name != DiskOS:
		return fmt.Errorf("%w: %s runs the system %q, which stores nothing: restart the server", machine.ErrPower, h.Name(), running.Name)
	}
	d, err := h.Attach(running.Boot, running.Source.Device)
	if err != nil {
		return err
	}
	// From here on the system stores nothing, and the server needs another, whether its files were
	// removed or not.
	return errors.Join(x.Close(), d.PutSystemFiles(nil), h.Apply(ctx, machine.Reset{Kind: machine.ForceRestart}))
}

// exec runs a command in the system that a server runs. A clock at max speed waits for
// it, but not for what somebody types at a terminal.
func (y *systems) exec(ctx context.Context, h *rack.Host, c control.Command) (int, error) {
	x, err := y.of(ctx, h)
	if err != nil {
		return 0, err
	}
	if !c.Terminal {
		defer y.clock.Enter()()
	}
	sizes := make(chan sandbox.WindowSize, 1)
	go func() {
		defer close(sizes)
		for s := range c.Resize {
			sizes <- sandbox.WindowSize(s)
		}
	}()
	code, err := x.Exec(ctx, sandbox.Command{
		Args: c.Args, Env: c.Env, Dir: c.Dir, Terminal: c.Terminal, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr,
		Size: sandbox.WindowSize(c.Size), Resize: sizes,
	})
	if errors.Is(err, sandbox.ErrClosed) || errors.Is(err, rack.ErrDown) {
		return 0, fmt.Errorf("%w: the system of %s has stopped", machine.ErrPower, h.Name())
	}
	if err != nil {
		return code, err
	}
	return code, x.CheckPaths()
}

// WatchFiles calls changed, which must not block, after each change of the files of the system
// that a host runs, with the absolute paths of all that differ from its image, sorted. The end
// of the system ends it, too.
func (l *Lab) WatchFiles(ctx context.Context, host string, changed func(local []string)) (stop func(), err error) {
	h, ok := l.rack.Host(host)
	if !ok {
		return nil, fmt.Errorf("there is no host %s", host)
	}
	x, err := l.agents.systems.of(ctx, h)
	if err != nil {
		return nil, err
	}
	return x.Watch(func(local sandbox.Tree) {
		var names []string
		for name := range local {
			names = append(names, "/"+name)
		}
		slices.Sort(names)
		changed(names)
	}), nil
}
