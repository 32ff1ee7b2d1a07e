package sandbox_test

import (
	"regexp"
	"testing"

	"github.com/metalab-dev/metalab/guest/sandbox"
)

// columns are the blanks between two.
var columns = regexp.MustCompile(" +")

// Units that are down are listed with --all, or by their state, alone (systemctl(1), list-units).
func TestListOfUnits(t *testing.T) {
	s, _ := booted(t)
	const text = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=systemctl is-system-running --quiet\n[Install]\nWantedBy=multi-user.target\n"
	put(t, s, sandbox.Tree{
		"etc/systemd/system/x-down.service": sandbox.File(0o644, text),
		"etc/systemd/system/x-up.service":   sandbox.File(0o644, text),
	})
	ctl(t, s, "enable", "x-up", "x-down")
	ctl(t, s, "start", "x-up")
	const up, down = "x-up.service loaded active exited x-up.service\n", "x-down.service loaded inactive dead x-down.service\n"
	for _, tt := range []struct {
		flags []string
		want  string
	}{
		{nil, up},
		{[]string{"--all"}, down + up},
		{[]string{"--state=inactive"}, down},
		{[]string{"--state=exited"}, up},
		{[]string{"--state=failed"}, ""},
		{[]string{"--all", "--type=timer"}, ""},
		{[]string{"--type=service"}, up},
	} {
		args := append([]string{"list-units", "--plain", "--no-legend", "x-*"}, tt.flags...)
		out, code := ctl(t, s, args...)
		if out = columns.ReplaceAllString(out, " "); out != tt.want || code != 0 {
			t.Errorf("systemctl %q = %d, %q; want %q", args, code, out, tt.want)
		}
	}
}
