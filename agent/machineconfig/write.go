package machineconfig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_5/types"

	"github.com/metalab-dev/metalab/agent/sys"
)

// writer writes a configuration to the present root. Each step has its reverse, which rollback
// runs.
type writer struct {
	System
	// local writes files also where the present root has them: the next root is another.
	local bool
	undo  []func() error
}

// rollback undoes all steps, the last first.
func (w *writer) rollback() error {
	var errs []error
	for _, step := range slices.Backward(w.undo) {
		errs = append(errs, step())
	}
	w.undo = nil
	return errors.Join(errs...)
}

// write writes the files and units of a configuration, and removes those that it does not have
// any more: of the configuration before it, and of targets that were given up.
func (w *writer) write(ctx context.Context, was, next *content, abandoned []string) error {
	for _, name := range next.paths() {
		if err := w.put(next.files[name], was); err != nil {
			return fmt.Errorf("file %q: %w", name, err)
		}
	}
	for _, u := range was.units {
		if n, ok := next.unitOf(u.Name); (!ok || !hasFile(n)) && enabled(u) {
			if err := w.enable(ctx, u.Name, false); err != nil {
				return fmt.Errorf("unit %q: %w", u.Name, err)
			}
		}
	}
	for _, name := range slices.Concat(was.paths(), abandoned) {
		if _, ok := next.files[name]; ok {
			continue
		}
		if err := w.restore(name); err != nil {
			return fmt.Errorf("file %q: %w", name, err)
		}
	}
	if slices.ContainsFunc(slices.Concat(was.paths(), next.paths()), func(n string) bool { return strings.HasPrefix(n, unitDir+"/") }) {
		if err := w.systemctl(ctx, "daemon-reload"); err != nil {
			return err
		}
	}
	for _, u := range next.units {
		if u.Enabled == nil || u.Mask != nil && *u.Mask {
			continue
		}
		if err := w.enable(ctx, u.Name, *u.Enabled); err != nil {
			return fmt.Errorf("unit %q: %w", u.Name, err)
		}
	}
	return nil
}

func hasFile(u types.Unit) bool { return u.Contents != nil && *u.Contents != "" }
func enabled(u types.Unit) bool { return u.Enabled != nil && *u.Enabled }

// put writes a file, unless it is there. What was there before any configuration had it is saved
// for the time when none has it.
func (w *writer) put(f file, was *content) error {
	before, err := w.read(f.Name)
	if err != nil {
		return err
	}
	if _, owned := was.files[f.Name]; !owned {
		if err := w.remember(f.Name, before); err != nil {
			return err
		}
	}
	if !w.local && before != nil && (file{File: *before}).equal(f) {
		return nil
	}
	w.undo = append(w.undo, func() error { return w.back(f.Name, before) })
	if before != nil && before.Mode&fs.ModeSymlink != 0 { // a system may write through it
		if err := w.Remove(f.Name); err != nil {
			return err
		}
	}
	return w.Put(f.File)
}

// remember stores the file that stood at a name before any configuration wrote it; nil: none did.
func (w *writer) remember(name string, before *sys.File) error {
	for _, record := range []string{original(name), absent(name)} {
		if _, err := w.Stat(record); !errors.Is(err, fs.ErrNotExist) {
			return err // it is known
		}
	}
	record := sys.File{Name: absent(name), Mode: 0o600}
	if before != nil {
		record = *before
		record.Name = original(name)
	}
	w.undo = append(w.undo, func() error { return w.Remove(record.Name) })
	return w.Put(record)
}

// restore removes a file of a configuration: the file that it replaced comes back. A file that no
// configuration has written stays.
func (w *writer) restore(name string) error {
	saved, err := w.read(original(name))
	if err != nil {
		return err
	}
	was, err := w.read(absent(name))
	if err != nil || saved == nil && was == nil {
		return err
	}
	before, err := w.read(name)
	if err != nil {
		return err
	}
	record := was
	if saved != nil {
		record = saved
	}
	w.undo = append(w.undo, func() error { return errors.Join(w.back(name, before), w.Put(*record)) })
	if before != nil {
		if err := w.Remove(name); err != nil {
			return err
		}
	}
	if saved != nil {
		back := *saved
		back.Name = name
		if err := w.Put(back); err != nil {
			return err
		}
	}
	return w.Remove(record.Name)
}

// back writes the remembered file at a name; nil removes it.
func (w *writer) back(name string, before *sys.File) error {
	err := w.Remove(name)
	if before != nil {
		err = errors.Join(err, w.Put(*before))
	}
	return err
}

// read returns the file at a name; nil if there is none.
func (w *writer) read(name string) (*sys.File, error) {
	if to, err := w.Readlink(name); err == nil {
		return &sys.File{Name: name, Mode: fs.ModeSymlink | 0o777, Link: to}, nil
	}
	st, err := w.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if st.Mode.IsDir() {
		return nil, &fs.PathError{Op: "write", Path: name, Err: errors.New("it is a directory")}
	}
	b, err := w.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return &sys.File{Name: name, Mode: st.Mode, UID: st.UID, GID: st.GID, Content: b}, nil
}

// enable enables or disables a unit, unless it is so.
func (w *writer) enable(ctx context.Context, unit string, on bool) error {
	code, err := w.Exec(ctx, sys.Command{Args: []string{"systemctl", "is-enabled", "--quiet", unit}})
	if err != nil {
		return err
	}
	if enabled := code == 0; enabled == on {
		return nil
	}
	verbs := map[bool]string{true: "enable", false: "disable"}
	w.undo = append(w.undo, func() error { return w.systemctl(context.WithoutCancel(ctx), verbs[!on], unit) })
	return w.systemctl(ctx, verbs[on], unit)
}

func (w *writer) systemctl(ctx context.Context, args ...string) error {
	return systemctl(ctx, w.System, args...)
}

func systemctl(ctx context.Context, s System, args ...string) error {
	var out bytes.Buffer
	code, err := s.Exec(ctx, sys.Command{Args: append([]string{"systemctl"}, args...), Stdout: &out, Stderr: &out})
	if err != nil {
		return fmt.Errorf("systemctl %s: %w", strings.Join(args, " "), err)
	}
	if code != 0 {
		return fmt.Errorf("systemctl %s ended with code %d: %s", strings.Join(args, " "), code, strings.TrimSpace(out.String()))
	}
	return nil
}

// keysFile has the SSH keys that configurations give core.
const keysFile = "/home/core/.ssh/authorized_keys.d/ignition"

// writeKeys writes the SSH keys and the password hash of core. The hash reaches chpasswd by its
// input: arguments of a process can be read by all.
func (w *writer) writeKeys(ctx context.Context, p plan, was, next *content) error {
	keys, hash := next.core()
	if p.keys {
		uid, gid := w.core()
		text := strings.Join(keys, "\n")
		if text != "" {
			text += "\n"
		}
		before, err := w.read(keysFile)
		if err != nil {
			return err
		}
		w.undo = append(w.undo, func() error { return w.back(keysFile, before) })
		if err := w.Put(sys.File{Name: keysFile, Mode: 0o600, UID: uid, GID: gid, Content: []byte(text)}); err != nil {
			return fmt.Errorf("SSH keys of core: %w", err)
		}
	}
	if !p.hash {
		return nil
	}
	_, old := was.core()
	w.undo = append(w.undo, func() error { return w.setPassword(context.WithoutCancel(ctx), old) })
	return w.setPassword(ctx, hash)
}

func (w *writer) setPassword(ctx context.Context, hash string) error {
	if hash == "" {
		hash = "*"
	}
	var out bytes.Buffer
	code, err := w.Exec(ctx, sys.Command{Args: []string{"chpasswd", "-e"}, Stdin: strings.NewReader(coreUser + ":" + hash + "\n"), Stdout: &out, Stderr: &out})
	if err == nil && code != 0 {
		err = fmt.Errorf("chpasswd ended with code %d: %s", code, strings.ReplaceAll(strings.TrimSpace(out.String()), hash, "******"))
	}
	if err != nil {
		return fmt.Errorf("password of core: %w", err)
	}
	return nil
}

// core returns the IDs of the user core; 0 when there is none.
func (w *writer) core() (uid, gid int) {
	b, err := w.ReadFile("/etc/passwd")
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Split(line, ":"); len(f) > 3 && f[0] == coreUser {
			_, _ = fmt.Sscan(f[2], &uid) // else the superuser's
			_, _ = fmt.Sscan(f[3], &gid)
		}
	}
	return uid, gid
}

// validate compares the files and units of a configuration with those on disk. written are files
// that another writer owns: certificates.
func validate(s System, c *content, written func(name string) bool) error {
	w := writer{System: s}
	for _, name := range c.paths() {
		if written(name) {
			continue
		}
		want := c.files[name]
		have, err := w.read(name)
		if err != nil {
			return fmt.Errorf("content mismatch for file %q: %w", name, err)
		}
		switch {
		case have == nil:
			return fmt.Errorf("content mismatch for file %q: it does not exist", name)
		case have.Link != want.Link || have.Mode.Type() != want.Mode.Type() || !bytes.Equal(have.Content, want.Content):
			return fmt.Errorf("content mismatch for file %q", name)
		case have.Mode != want.Mode:
			return fmt.Errorf("mode mismatch for file: %q; expected: %v; received: %v", name, want.Mode, have.Mode)
		}
	}
	return nil
}
