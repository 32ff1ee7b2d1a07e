package disk

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/agent/sys/systest"
)

// erasing returns a machine with one disk that may be able to erase itself.
func erasing(b sys.Block, command string) (sys.System, []job.Disk) {
	s := systest.New(systest.Machine{Disks: []systest.Disk{{Name: "sda", Kind: systest.SATA, Size: b.Size(), Erase: command, Open: func() (sys.Block, error) { return b, nil }}}})
	return s, []job.Disk{{Name: "/dev/sda", SizeBytes: b.Size()}}
}

func TestErase(t *testing.T) {
	const size = 3*mib + 512
	for _, tt := range []struct {
		how     job.Erase
		command string
		left    string // byte in the middle of the disk
		by      string
	}{
		{job.EraseMetadata, "", "\xdb\xdb", "metadata"},
		{job.EraseFull, "", "\x00\x00", "zeros"},
		{job.EraseFull, "ATA Security Erase", "\x00\x00", "zeros"},
		{job.EraseSecure, "ATA Security Erase", "\x00\x00", "ATA Security Erase"},
		{job.EraseSecure, "", "\x00\x00", "zeros"},
	} {
		m := used(t, size)
		s, disks := erasing(m, tt.command)
		var percents []int
		got, err := Erase(t.Context(), s, disks, tt.how, func(p int) { percents = append(percents, p) })
		if err != nil || !slices.Equal(got, []job.Erased{{Device: "/dev/sda", By: tt.by}}) {
			t.Errorf("Erase(%q) = %v, %v", tt.how, got, err)
		}
		if have := get(t, m, size/2, 2); have != tt.left {
			t.Errorf("Erase(%q): the middle holds %q, want %q", tt.how, have, tt.left)
		}
		if have := get(t, m, 0, mib) + get(t, m, size-mib, mib); strings.Trim(have, "\x00") != "" {
			t.Errorf("Erase(%q): the ends are not blank", tt.how)
		}
		if !slices.IsSorted(percents) || percents[0] != 0 {
			t.Errorf("Erase(%q): progress %v", tt.how, percents)
		}
	}
}

func TestEraseIsRefused(t *testing.T) {
	s, disks := erasing(systest.NewMemory(mib), "")
	if _, err := Erase(t.Context(), s, disks, "shred", nil); err == nil || !strings.Contains(err.Error(), `erasure "shred" is unknown`) {
		t.Errorf("Erase(shred) = %v", err)
	}
	why := errors.New("not wanted any more")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := Erase(ctx, s, disks, job.EraseFull, nil); !errors.Is(err, why) {
		t.Errorf("Erase, cancelled = %v", err)
	}
}

// lazy reports an erasure that it has not done.
type lazy struct{ *systest.Memory }

func (l lazy) Zero(off, n int64) error {
	if n > mib {
		return nil
	}
	return l.Memory.Zero(off, n)
}

func TestEraseVerifiesTheErasure(t *testing.T) {
	s, disks := machine(lazy{used(t, 4*mib)})
	if got, err := Erase(t.Context(), s, disks, job.EraseFull, nil); err == nil || len(got) != 0 || !strings.Contains(err.Error(), "disk: clean /dev/sda: the disk still holds something at byte 0") {
		t.Errorf("Erase = %v, %v", got, err)
	}
}
