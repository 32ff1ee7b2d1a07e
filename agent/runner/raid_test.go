package runner_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/plugin/mdraid"
	"github.com/metalab-dev/metalab/agent/runner"
	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/agent/sys/systest"
)

// arrayBench returns a server with three disks and an agent.
func arrayBench(t *testing.T) (*systest.System, func(job.Job) job.Report) {
	t.Helper()
	var m systest.Machine
	for _, serial := range []string{"S1", "S2", "S3"} {
		d := systest.NewMemory(8 << 30)
		m.Disks = append(m.Disks, systest.Disk{Kind: systest.SATA, Size: d.Size(), Serial: serial, Open: func() (sys.Block, error) { return d, nil }})
	}
	s := systest.New(m)
	r, err := runner.New(runner.Config{System: s})
	if err != nil {
		t.Fatal(err)
	}
	return s, func(j job.Job) job.Report { return r.Run(t.Context(), j, nil) }
}

func raidJob(id string, arrays ...job.ArraySpec) job.Job {
	return job.Job{ID: id, Kind: job.RAID, RAID: &job.RAIDSpec{ID: id, Made: 1, Arrays: arrays}}
}

func TestArraysAreCreatedErasedAndDeleted(t *testing.T) {
	s, run := arrayBench(t)
	rep := run(raidJob("1", job.ArraySpec{Name: "root", Level: "1", Disks: []job.Hints{{SerialNumber: "S3"}, {SerialNumber: "S1"}}}))
	if rep.State != job.Done || len(rep.Arrays) != 1 || !slices.Equal(rep.Arrays[0].Disks, []string{"/dev/sdc", "/dev/sda"}) || len(rep.Cleaned) != 3 {
		t.Fatalf("report %+v", rep)
	}
	disks := func() (members, arrays string) {
		t.Helper()
		for _, d := range run(job.Job{ID: rep.Arrays[0].UUID + t.Name() + members, Kind: job.Inventory}).Inventory.Disks {
			if d.Member {
				members += d.Name + " "
			}
			if d.Array != "" {
				arrays += d.Array + " "
			}
		}
		return members, arrays
	}
	if m, a := disks(); m != "/dev/sda /dev/sdc " || a != "root " {
		t.Errorf("members %q, arrays %q", m, a)
	}
	// Before an image is written disks are erased (B-61), but not the arrays for
	// it.
	preserved := run(job.Job{ID: "2", Kind: job.Clean, Clean: &job.CleanSpec{Arrays: job.ArraysPreserved}})
	if got := devices(preserved); got != "/dev/sdb /dev/md127" || preserved.State != job.Done {
		t.Errorf("keeping arrays, it erased %s: %+v", got, preserved)
	}
	// Members of an array that is to be replaced can be chosen by hints.
	again := run(raidJob("replace", job.ArraySpec{Name: "data", Level: "1", Disks: []job.Hints{{SerialNumber: "S1"}, {SerialNumber: "S2"}}}))
	if again.State != job.Done || !slices.Equal(again.Arrays[0].Disks, []string{"/dev/sda", "/dev/sdb"}) {
		t.Errorf("on members of another: %+v", again)
	}
	// A second run starts from the beginning: the result of the first is in the
	// way.
	if rep := run(raidJob("3", job.ArraySpec{Name: "root", Level: "1"})); rep.State != job.Done || len(rep.Arrays[0].Disks) != 3 {
		t.Errorf("the second time: %+v", rep)
	}
	only := run(job.Job{ID: "4", Kind: job.Clean, Clean: &job.CleanSpec{Arrays: job.ArraysOnly}})
	if got := devices(only); got != "/dev/sda /dev/sdb /dev/sdc" || len(mdraid.Running(s)) > 0 {
		t.Errorf("arrays alone: it erased %s, %v run", got, mdraid.Running(s))
	}
	if got := devices(run(job.Job{ID: "5", Kind: job.Clean, Clean: &job.CleanSpec{Arrays: job.ArraysOnly}})); got != "" {
		t.Errorf("without arrays it erased %s", got)
	}
}

func devices(r job.Report) string {
	var out []string
	for _, e := range r.Cleaned {
		out = append(out, e.Device)
	}
	return strings.Join(out, " ")
}

func TestImpossibleArraysLeaveTheDisksAlone(t *testing.T) {
	_, run := arrayBench(t)
	rep := run(raidJob("1", job.ArraySpec{Name: "root", Level: "1", Disks: []job.Hints{{SerialNumber: "S1"}, {SerialNumber: "S9"}}}))
	if rep.State != job.Failed || !strings.HasPrefix(rep.Error, `software RAID root: disk: no disk matches the root device hints serialNumber="S9"`) || !rep.Impossible || len(rep.Cleaned) > 0 {
		t.Errorf("report %+v", rep)
	}
	if rep := run(raidJob("3", job.ArraySpec{Name: "root", Level: "1", SizeGiB: 100})); rep.State != job.Failed || !rep.Impossible || len(rep.Cleaned) > 0 {
		t.Errorf("too large: %+v", rep)
	}
	if rep := run(job.Job{ID: "2", Kind: job.RAID}); rep.State != job.Failed || rep.Impossible {
		t.Errorf("without a specification: %+v", rep)
	}
}
