package lab

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/guest/sandbox"
)

// A lab whose servers' commands the kernel does not limit says so when it starts, and one where
// it does says nothing.
func TestLabWithoutLimitsOfCommandsWarns(t *testing.T) {
	for _, tt := range []struct {
		limits error
		want   int // lines
	}{
		{limits: nil, want: 0},
		{limits: &sandbox.LimitsError{Err: errors.New("no limit of the controller memory")}, want: 1},
	} {
		var log strings.Builder
		newSystems(nil, slog.New(slog.NewTextHandler(&log, nil)), t.TempDir(), nil, tt.limits)
		if got := strings.Count(log.String(), "level=WARN"); got != tt.want || got > 0 && !strings.Contains(log.String(), "no limit of the controller memory") {
			t.Errorf("with %v the log is %q, want %d warnings with the reason", tt.limits, log.String(), tt.want)
		}
	}
}
