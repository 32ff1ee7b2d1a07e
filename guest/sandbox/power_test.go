package sandbox_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metalab-dev/metalab/guest/sandbox"
)

// started records how a system has ended its boots, in its time.
type started struct {
	*sandbox.System
	done []string
}

// powered returns a system whose time is that of a synctest bubble.
func powered() *started {
	s := new(started)
	began := time.Now()
	note := func(what string) func() {
		return func() { s.done = append(s.done, what+" after "+time.Since(began).String()) }
	}
	s.System = sandbox.New(sandbox.Config{Base: base(), Store: &memory{}, Now: time.Now, Reboot: note("reboot"), PowerOff: note("poweroff")})
	return s
}

func (s *started) do(t *testing.T, line string) (string, int) {
	t.Helper()
	var out strings.Builder
	code, err := s.Exec(context.Background(), sandbox.Command{Args: strings.Fields(line), Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return out.String(), code
}

// Programs that end a boot do so as their manual pages say, in the lab's time, and nothing else does.
func TestProgramsEndTheBoot(t *testing.T) {
	for line, want := range map[string]string{
		"reboot": "reboot after 0s", "reboot -f": "reboot after 0s", "reboot --poweroff": "poweroff after 0s", "poweroff": "poweroff after 0s",
		"poweroff --reboot": "reboot after 0s", "halt": "poweroff after 0s", "systemctl reboot": "reboot after 0s", "systemctl poweroff": "poweroff after 0s",
		"shutdown now": "poweroff after 0s", "shutdown -h now": "poweroff after 0s", "shutdown -r 0 Reboot by a playbook": "reboot after 0s",
		"shutdown -r +3": "reboot after 3m0s", "shutdown": "poweroff after 1m0s", "shutdown -P 00:30": "poweroff after 30m0s",
		"reboot --help": "", "reboot -w": "", "reboot --nonsense": "", "shutdown --help": "", "shutdown -k now": "", "shutdown -x": "", "shutdown soon": "", "shutdown 24:00": "", "shutdown +99999999": "",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := powered()
			out, code := s.do(t, line)
			<-time.After(time.Hour) // of the bubble
			synctest.Wait()
			if got := strings.Join(s.done, ", "); got != want {
				t.Errorf("%s: done %q, want %q; code %d, %q", line, got, want, code, out)
			}
			if fails := strings.ContainsAny(line, "x9") || strings.HasSuffix(line, "nonsense") || strings.HasSuffix(line, "soon") || strings.HasSuffix(line, "24:00"); (code != 0) != fails || fails && out == "" {
				t.Errorf("%s: code %d, %q", line, code, out)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A shutdown is cancelled by "shutdown -c", by another, and by the end of the system.
func TestShutdownIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := powered()
		if out, code := s.do(t, "shutdown -r +5"); code != 0 || !strings.Contains(out, "Shutdown scheduled for Sat 2000-01-01 00:05:00 UTC") {
			t.Errorf("shutdown -r +5 = code %d, %q", code, out)
		}
		s.do(t, "shutdown -c")
		s.do(t, "shutdown -r +5")
		s.do(t, "shutdown +10")
		<-time.After(8 * time.Minute) // of the bubble
		if len(s.done) > 0 {
			t.Errorf("done %v, which was cancelled", s.done)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		<-time.After(time.Hour) // of the bubble
		if len(s.done) > 0 {
			t.Errorf("done %v after the end of the system", s.done)
		}
		if _, code := s.do(t, "shutdown +1"); code == 0 {
			t.Error("a system that has ended takes a shutdown")
		}
	})
}
