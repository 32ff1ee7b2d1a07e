package lcm

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/agent/sys"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// syncKeys makes authorized_keys of the superuser contain the keys of the object. It removes a
// key that the object no longer has, and leaves the keys of operators.
func (a *agent) syncKeys(m *lcmv1.LCMMachine) error {
	var want []string
	for _, key := range m.Spec.SSHAuthorizedKeys {
		if key = strings.TrimSpace(key); key != "" && !strings.ContainsAny(key, "\n\r") && !slices.Contains(want, key) {
			want = append(want, key)
		}
	}
	if a.synced != nil && slices.Equal(a.synced, want) {
		return nil
	}
	b, err := a.System.ReadFile(keysFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("lcm: SSH keys: %w", err)
	}
	var lines []string
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\n")
		key := strings.TrimSpace(line)
		if slices.Contains(a.state.SSHKeys, key) && !slices.Contains(want, key) {
			continue
		}
		lines = append(lines, line)
	}
	for _, key := range want {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.TrimSpace(line) == key }) {
			lines = append(lines, key)
		}
	}
	text := strings.Join(lines, "\n")
	if text != "" {
		text += "\n"
	}
	// The state is stored before the key is written: an agent that is killed between the two
	// still knows which keys it may remove.
	if err := a.change(func(s *state) { s.SSHKeys = union(a.state.SSHKeys, want) }); err != nil {
		return err
	}
	if text != string(b) {
		err := a.System.Put(sys.File{Name: path.Dir(keysFile), Mode: fs.ModeDir | 0o700}, sys.File{Name: keysFile, Mode: 0o600, Content: []byte(text)})
		if err != nil {
			return fmt.Errorf("lcm: SSH keys: %w", err)
		}
	}
	a.synced = append([]string{}, want...)
	return a.change(func(s *state) { s.SSHKeys = want })
}

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, one := range b {
		if !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	return out
}
