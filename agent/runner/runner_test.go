package runner_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/runner"
	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/agent/sys/systest"
)

// server returns a server with one disk of 16 MiB.
func server() *systest.System {
	m := systest.NewMemory(16 << 20)
	return systest.New(systest.Machine{
		Hostname: "node-1",
		Disks: []systest.Disk{{
			Kind: systest.SATA, Size: m.Size(), Serial: "S1", Open: func() (sys.Block, error) { return m, nil },
		}},
	})
}

func newRunner(t *testing.T, c runner.Config) *runner.Runner {
	t.Helper()
	if c.System == nil {
		c.System = server()
	}
	r, err := runner.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestJobs(t *testing.T) {
	image := strings.Repeat("\xebimage", 1<<20)
	sum := sha256.Sum256([]byte(image))
	digest := hex.EncodeToString(sum[:])
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, image) }))
	defer s.Close()
	hint := job.Hints{SerialNumber: "S1"}
	for _, tt := range []struct {
		name string
		job  job.Job
		want job.Report
	}{
		{"clean", job.Job{ID: "1", Kind: job.Clean}, job.Report{State: job.Done, Cleaned: []job.Erased{{Device: "/dev/sda", By: "metadata"}}}},
		{"write", job.Job{ID: "2", Kind: job.Write, Write: &job.WriteSpec{URL: s.URL, Checksum: digest, Root: hint}},
			job.Report{State: job.Done, Written: &job.Written{Device: "/dev/sda", Bytes: int64(len(image)), Sum: digest}}},
		{"write nothing", job.Job{ID: "3", Kind: job.Write}, job.Report{State: job.Failed, Error: "runner: a write job without its specification"}},
		{"write without checksum", job.Job{ID: "4", Kind: job.Write, Write: &job.WriteSpec{URL: s.URL, Root: hint}},
			job.Report{State: job.Failed, Error: "disk: checksum is missing"}},
		{"unknown", job.Job{ID: "5", Kind: "dance"}, job.Report{State: job.Failed, Error: `runner: the agent knows no job of kind "dance"`}},
	} {
		if diff := cmp.Diff(tt.want, newRunner(t, runner.Config{}).Run(t.Context(), tt.job, nil)); diff != "" {
			t.Errorf("Run(%s) (-want +got):\n%s", tt.name, diff)
		}
	}
	got := newRunner(t, runner.Config{}).Run(t.Context(), job.Job{ID: "6", Kind: job.Inventory}, nil)
	if got.State != job.Done || got.Inventory == nil || got.Inventory.Hostname != "node-1" || len(got.Inventory.Disks) != 1 {
		t.Errorf("Run(inventory) = %+v", got)
	}
}

func TestFinishedJobIsAnsweredFromMemory(t *testing.T) {
	var requests atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		fmt.Fprint(w, "not what the checksum says")
	}))
	defer s.Close()
	r := newRunner(t, runner.Config{})
	j := job.Job{ID: "1", Kind: job.Write, Write: &job.WriteSpec{URL: s.URL, Checksum: strings.Repeat("0", 64), Root: job.Hints{HCTL: "0:0:0:0"}}}
	first := r.Run(t.Context(), j, nil)
	if first.State != job.Failed {
		t.Fatalf("Run = %+v, want a failure", first)
	}
	if diff := cmp.Diff(first, r.Run(t.Context(), j, nil)); diff != "" {
		t.Errorf("Run a second time (-first +second):\n%s", diff)
	}
	if requests.Load() != 1 {
		t.Errorf("%d downloads, want 1", requests.Load())
	}
	for i := range 64 { // one more than is remembered
		r.Run(t.Context(), job.Job{ID: fmt.Sprint("other ", i), Kind: job.Inventory}, nil)
	}
	r.Run(t.Context(), j, nil)
	if requests.Load() != 2 {
		t.Errorf("%d downloads after the job was forgotten, want 2", requests.Load())
	}
}

func TestCancelledJobIsNotFinished(t *testing.T) {
	r := newRunner(t, runner.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	j := job.Job{ID: "1", Kind: job.Clean}
	if got := r.Run(ctx, j, nil); got.State != job.Failed || !strings.Contains(got.Error, "context canceled") {
		t.Errorf("Run when cancelled = %+v", got)
	}
	if got := r.Run(t.Context(), j, nil); got.State != job.Done {
		t.Errorf("Run afterwards = %+v, want it done", got)
	}
}

func TestDeadline(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer s.Close()
	r := newRunner(t, runner.Config{Deadline: 10 * time.Millisecond})
	got := r.Run(t.Context(), job.Job{ID: "1", Kind: job.Write, Write: &job.WriteSpec{URL: s.URL, Checksum: strings.Repeat("0", 64), Root: job.Hints{HCTL: "0:0:0:0"}}}, nil)
	if got.State != job.Failed || !strings.Contains(got.Error, "the job took longer than 10ms") {
		t.Errorf("Run = %+v, want the deadline", got)
	}
}

func TestProgressComesInSteps(t *testing.T) {
	image := make([]byte, 12<<20)
	sum := sha256.Sum256(image)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(image) }))
	defer s.Close()
	var got []int
	r := newRunner(t, runner.Config{})
	r.Run(t.Context(), job.Job{ID: "1", Kind: job.Write, Write: &job.WriteSpec{
		URL: s.URL, Checksum: hex.EncodeToString(sum[:]), Root: job.Hints{HCTL: "0:0:0:0"},
	}}, func(p int) { got = append(got, p) })
	if len(got) == 0 || got[0] > 10 {
		t.Errorf("progress %v, want a value at the start", got)
	}
	for i := 1; i < len(got); i++ {
		if got[i] < got[i-1]+5 {
			t.Errorf("progress %v, want steps of 5 and more", got)
		}
	}
}

func TestConfig(t *testing.T) {
	if _, err := runner.New(runner.Config{}); err == nil {
		t.Error("New without a system succeeded")
	}
}

// B-156: a method is built in or from Config.Methods.
func TestCustomMethods(t *testing.T) {
	var seen job.WriteSpec
	custom := func(_ context.Context, _ sys.System, spec job.WriteSpec, disks []job.Disk, _ func(int)) (job.Report, error) {
		seen = spec
		return job.Report{Written: &job.Written{Device: disks[0].Name}}, nil
	}
	disk := systest.NewMemory(1 << 20)
	if _, err := disk.WriteAt([]byte("old"), 0); err != nil {
		t.Fatal(err)
	}
	s := systest.New(systest.Machine{Disks: []systest.Disk{{Kind: systest.SATA, Size: disk.Size(), Open: func() (sys.Block, error) { return disk, nil }}}})
	r, err := runner.New(runner.Config{System: s, Methods: map[string]runner.Method{"install_ours": custom}})
	if err != nil {
		t.Fatal(err)
	}
	run := func(id, method string) job.Report {
		return r.Run(t.Context(), job.Job{ID: id, Kind: job.Custom, Custom: &job.CustomSpec{Method: method, Write: job.WriteSpec{URL: "http://h/x"}}}, nil)
	}
	if got := run("1", "install_ours"); got.State != job.Done || got.Written == nil || got.Written.Device != "/dev/sda" || seen.URL != "http://h/x" {
		t.Errorf("a method of ours: %+v, given %+v", got, seen)
	}
	if got := run("2", "no_such"); got.State != job.Failed || got.Error != `runner: the agent knows no deployment method "no_such"` {
		t.Errorf("a method of nobody's: %+v", got)
	}
	if got := run("3", "write_image"); got.State != job.Failed || !strings.HasPrefix(got.Error, "disk: no root device hints are given") {
		t.Errorf("write_image: %+v", got)
	}
	if got := run("4", "erase_devices_metadata"); got.State != job.Done || len(got.Cleaned) != 1 {
		t.Errorf("erase_devices_metadata: %+v", got)
	}
	p := make([]byte, 3)
	if _, err := disk.ReadAt(p, 0); err != nil || string(p) != "\x00\x00\x00" {
		t.Errorf("the disk holds %q, %v", p, err)
	}
	if got := r.Run(t.Context(), job.Job{ID: "5", Kind: job.Custom}, nil); got.State != job.Failed {
		t.Errorf("a custom job without its specification: %+v", got)
	}
}
