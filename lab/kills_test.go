package lab

import (
	"bytes"
	gocmp "cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/kube"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/sample"
)

// runsEnv is the environment variable with the seeds to run: "200" means the first 200,
// "12:16" means 12 to 15. The default is a few, which find only gross errors.
const (
	runsEnv = "METALAB_KILLED_RUNS"
	fewRuns = 16
)

// atOnce hosts share a lab and its controllers, which are killed at the points of any of
// them. With more hosts, each start of the controllers takes longer. perLab runs share a
// lab, because starting a lab takes longer than a run.
const (
	atOnce = 4
	perLab = 48
)

// outcome is everything about a stage of a host's life that must not depend on how often
// the controllers were killed. The events of the host's object are not in it: a killed
// controller may lose a few.
type outcome struct {
	Status    *metal3.BareMetalHostStatus // nil: the host is deleted
	Hardware  *metal3.HardwareDetails     // hardwareDetails of the host's HardwareData
	Disks     map[string]string           // a digest of each drive's contents
	Downloads int                         // number of downloads of the image
	Jobs      map[string]int              // number of the agents' jobs, by kind
	Server    []string                    // events of the server and of its virtual CD, in order
	Left      []string                    // objects that are left after the host's deletion
}

// sameLife compares two lives, but for the fields that always differ.
var sameLife = cmp.Options{
	cmpopts.IgnoreFields(metal3.BareMetalHostStatus{}, "LastUpdated"),
	cmpopts.IgnoreFields(metal3.ProvisionStatus{}, "ID"),
	cmpopts.IgnoreFields(metal3.CredentialsStatus{}, "Version"), // resourceVersion of the Secret, which each life creates
	cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime"),
	// Of the times in the history, only whether they are set is compared.
	cmp.Transformer("isSet", func(t metav1.Time) bool { return !t.IsZero() }),
}

// In a lab with its Kubernetes API, BMCs, agents and image bytes, the controllers are
// killed at random points, often several times in a host's life. Nothing is lost, and
// nothing is done twice: each life must have the outcome of the life without a kill that
// comes first.
func TestKilledControllersLoseNothingAndRepeatNothing(t *testing.T) {
	first, end := seeds(t)
	defer kube.TrimCollector()() // as labctl does
	for at := first; at < end; at += perLab {
		t.Run(fmt.Sprintf("from %d", at), func(t *testing.T) {
			t.Parallel()
			runSeeds(t, at, min(at+perLab, end))
		})
	}
}

func seeds(t *testing.T) (first, end uint64) {
	t.Helper()
	text := gocmp.Or(os.Getenv(runsEnv), strconv.Itoa(sample.Part(fewRuns)))
	from, to, both := strings.Cut(text, ":")
	if !both {
		from, to = "0", text
	}
	first, err := strconv.ParseUint(from, 10, 32)
	end, err2 := strconv.ParseUint(to, 10, 32)
	if err != nil || err2 != nil || first >= end {
		t.Fatalf("%s=%q: want a number of runs, such as 200, or seeds, such as 12:16", runsEnv, text)
	}
	return first, end
}

// runSeeds runs the lives of the seeds from first to end-1 in a lab of their own.
func runSeeds(t *testing.T, first, end uint64) {
	m := newKiller()
	w, err := Start(t.Context(), Config{
		Dir: t.TempDir(), Settings: Settings{Hosts: int(min(end-first, atOnce)), Speed: "max", Kube: true, NoController: true},
		Listen: AnyPort, Log: m.log(), Images: m.imageServer,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
	b := &batch{t: t, lab: w, killer: m, seen: map[types.UID]int32{}, uids: map[string]types.UID{}}
	if b.kube, err = w.Kubernetes(); err != nil {
		t.Fatal(err)
	}
	for i := range w.Hosts() {
		b.names = append(b.names, fmt.Sprintf("host-%02d", i))
	}
	m.wrapClients(t, w, b.names)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()

	quiet := b.live(nil)
	for _, name := range b.names {
		mustBeComplete(t, name, quiet)
	}
	runs := 0
	for ; first < end; first += uint64(len(b.names)) {
		var seeds []uint64
		for i := range b.names {
			seeds = append(seeds, first+uint64(i))
		}
		got := b.live(seeds)
		for i, name := range b.names {
			t.Run(fmt.Sprint(seeds[i]), func(t *testing.T) { compare(t, name, quiet, got) })
		}
		runs += len(seeds)
	}
	t.Logf("%d kills in %d lives", m.killCount(), runs)
	if m.killCount() < 2*runs {
		t.Errorf("%d kills in %d lives: want at least %d", m.killCount(), runs, 2*runs)
	}
}

// mustBeComplete checks the life without a kill, with which all others are compared: the
// host was inspected, cleaned, written, deprovisioned and deleted.
func mustBeComplete(t *testing.T, name string, l life) {
	t.Helper()
	in, out, gone := l[0].came[name], l[1].came[name], l[2].came[name]
	deployed := map[string]int{string(job.Inventory): 1, string(job.Clean): 1, string(job.Write): 1}
	switch {
	case in.Downloads != 1 || !cmp.Equal(in.Jobs, deployed):
		t.Fatalf("%s without a kill: %d downloads, jobs %v; want one, and %v", name, in.Downloads, in.Jobs, deployed)
	case out.Jobs[string(job.Clean)] != 1 || len(gone.Left) > 0:
		t.Fatalf("%s without a kill: jobs %v on its way out; %v are left", name, out.Jobs, gone.Left)
	case cmp.Equal(in.Disks, out.Disks) || len(in.Server) == 0 || len(l[0].events[name]) == 0:
		t.Fatalf("%s without a kill: disks %v, then %v; its server %v; events %v", name, in.Disks, out.Disks, in.Server, l[0].events[name])
	}
}

// life holds the outcomes of each stage.
type life []stage

type stage struct {
	name   string
	came   map[string]outcome
	events map[string]map[string]int // by host: how often each event of its object was published
}

func compare(t *testing.T, name string, want, got life) {
	t.Helper()
	for i, s := range got {
		if diff := cmp.Diff(want[i].came[name], s.came[name], sameLife); diff != "" {
			t.Errorf("%s, %s; without a kill (-), with kills (+):\n%s", name, s.name, diff)
		}
		for text, n := range s.events[name] {
			if once := want[i].events[name][text]; n > once {
				t.Errorf("%s, %s: event %q was published %d times, want %d", name, s.name, text, n, once)
			}
		}
	}
}

// batch is a group of hosts in one lab that go through their lives at the same time.
type batch struct {
	t      *testing.T
	lab    *Lab
	killer *killer
	kube   client.WithWatch
	names  []string
	uids   map[string]types.UID // UIDs of the last objects, by host

	since journal.Mark
	seen  map[types.UID]int32 // counts of the events of earlier stages and lives
}

// live registers and provisions all hosts, deprovisions them to available, and deletes
// them. On the way in and on the way out the controllers are killed at points that the
// hosts' seeds determine; without seeds they are not killed.
func (b *batch) live(seeds []uint64) (l life) {
	steps := []struct {
		name   string
		way    int // in, or out
		begin  func(i int, name string) error
		settle func(*rack.Host, *metal3.BareMetalHost) bool
	}{
		{"provisioned", 0, b.create, func(s *rack.Host, h *metal3.BareMetalHost) bool {
			return is(h, metal3.StateProvisioned) && phaseIs(s, machine.Running)
		}},
		{"available", 1, b.takeImage, func(s *rack.Host, h *metal3.BareMetalHost) bool {
			return is(h, metal3.StateAvailable) && phaseIs(s, machine.Halted)
		}},
		{"gone", 1, b.delete, func(s *rack.Host, h *metal3.BareMetalHost) bool {
			return h == nil && s.Machine().Power == machine.PowerOff
		}},
	}
	way := -1
	for _, s := range steps {
		if way != s.way {
			way = s.way
			b.killer.begin(way, seeds)
		}
		_, b.since, _ = b.lab.rack.Journal().Select(journal.Query{Last: 1})
		for i, name := range b.names {
			if err := s.begin(i, name); err != nil {
				b.t.Fatalf("%s: %s: %v", s.name, name, err)
			}
		}
		b.await(s.name, s.settle)
		l = append(l, b.look(s.name))
	}
	return l
}

func is(h *metal3.BareMetalHost, s metal3.ProvisioningState) bool {
	return h != nil && h.Status.Provisioning.State == s && h.Status.PoweredOn
}

func phaseIs(s *rack.Host, p machine.Phase) bool { return s.Machine().Phase == p }

// create registers a host with an image and with user data of its own in its config drive.
func (b *batch) create(i int, name string) error {
	secret, host := Objects(b.lab.Hosts()[i])
	secret.Name, host.Name, host.Spec.BMC.CredentialsName = name+"-bmc", name, name+"-bmc"
	raw, url := "raw", b.lab.ImagesURL()+DemoImage
	host.Spec.Image = &metal3.Image{URL: url + "?for=" + name, Checksum: url + ".sha256", ChecksumType: metal3.SHA256, DiskFormat: &raw}
	user := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-user", Namespace: Namespace},
		StringData: map[string]string{"userData": "#cloud-config\n# " + name + "\n"},
	}
	host.Spec.UserData = &corev1.SecretReference{Name: user.Name, Namespace: Namespace}
	err := b.kube.Create(b.t.Context(), user)
	if apierrors.IsAlreadyExists(err) { // the controllers do not delete user data
		err = nil
	}
	return errors.Join(err, b.kube.Create(b.t.Context(), secret), b.kube.Create(b.t.Context(), host))
}

func (b *batch) takeImage(_ int, name string) error {
	h := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace}}
	return b.kube.Patch(b.t.Context(), h, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"image":null}}`)))
}

func (b *batch) delete(_ int, name string) error {
	return b.kube.Delete(b.t.Context(), &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace}})
}

// hosts returns the BareMetalHosts by name.
func (b *batch) hosts(ctx context.Context) (map[string]*metal3.BareMetalHost, error) {
	var l metal3.BareMetalHostList
	if err := b.kube.List(ctx, &l, client.InNamespace(Namespace)); err != nil {
		return nil, err
	}
	out := map[string]*metal3.BareMetalHost{}
	for i := range l.Items {
		out[l.Items[i].Name] = &l.Items[i]
	}
	return out, nil
}

// await waits until ok returns true for every host and its server.
func (b *batch) await(what string, ok func(*rack.Host, *metal3.BareMetalHost) bool) {
	b.t.Helper()
	err := patience.Until(b.t.Context(), patience.Limit(), func(ctx context.Context) (bool, string, error) {
		all, err := b.hosts(ctx)
		var late []string
		for i, name := range b.names {
			if s := b.lab.rack.Hosts()[i]; !ok(s, all[name]) {
				text := fmt.Sprintf("%s: server %s, %s", name, s.Machine().Power, s.Machine().Phase)
				if h := all[name]; h != nil {
					text += fmt.Sprintf("; host %s, on %v, %s %q", h.Status.Provisioning.State, h.Status.PoweredOn, h.Status.ErrorType, h.Status.ErrorMessage)
				}
				late = append(late, text)
			}
		}
		return len(late) == 0 && err == nil, "not these:\n" + strings.Join(late, "\n"), err
	})
	if err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

// look returns the outcomes of a stage.
func (b *batch) look(what string) stage {
	b.t.Helper()
	s := stage{what, map[string]outcome{}, map[string]map[string]int{}}
	all, err := b.hosts(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	for i, name := range b.names {
		server := b.lab.rack.Hosts()[i]
		if h := all[name]; h != nil {
			b.uids[name] = h.UID
		}
		o := outcome{Disks: b.disks(server, b.uids[name]), Server: b.server(server)}
		o.Downloads, o.Jobs = b.killer.takeCounts(name)
		if h := all[name]; h != nil {
			o.Status, o.Hardware = &h.Status, b.hardware(name)
		} else {
			o.Left = b.left(name)
		}
		s.came[name] = o
	}
	return b.published(s)
}

// disks returns a digest of the contents of each of a server's drives, without holes and
// without the UID of the host's object, which is in its config drive.
func (b *batch) disks(s *rack.Host, id types.UID) map[string]string {
	out := map[string]string{}
	for _, d := range s.Machine().Identity.Storage[0].Drives {
		m, err := s.Medium(d.ID)
		if err != nil {
			b.t.Fatal(err)
		}
		if out[d.ID], err = digest(m, d.Capacity, []byte(id)); err != nil {
			b.t.Fatal(err)
		}
	}
	return out
}

func digest(m *rack.Disk, size int64, id []byte) (string, error) {
	const block = 64 << 10
	sum, buf, zero := sha256.New(), make([]byte, block), make([]byte, block)
	for off := int64(0); off < size; off += block {
		at, err := m.NextData(off)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
		off = at - at%block
		n, err := m.ReadAt(buf[:min(block, size-off)], off)
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		if !bytes.Equal(buf[:n], zero[:n]) { // a block of zeros is equal to a hole
			_ = binary.Write(sum, binary.BigEndian, off) // a hash returns no error
			sum.Write(bytes.ReplaceAll(buf[:n], id, []byte("the object's UID")))
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// deploymentEvents are the events of a server that a second deployment would repeat. An
// ejection is not one of them: a controller may repeat it without effect.
var deploymentEvents = []string{"power.state", "boot.tried", "os.started", "media.inserted"}

func (b *batch) server(s *rack.Host) (out []string) {
	entries, _, err := b.lab.rack.Journal().Select(journal.Query{Host: s.Name(), Kind: journal.Event, After: b.since})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range entries {
		if slices.Contains(deploymentEvents, e.What) {
			out = append(out, e.What+" "+e.Text)
		}
	}
	return out
}

func (b *batch) hardware(name string) *metal3.HardwareDetails {
	var hd metal3.HardwareData
	if err := b.kube.Get(b.t.Context(), client.ObjectKey{Namespace: Namespace, Name: name}, &hd); err != nil {
		b.t.Errorf("%s: %v", name, err)
	}
	return hd.Spec.HardwareDetails
}

// left returns the objects that are left of a deleted host. It waits for the garbage
// collector.
func (b *batch) left(name string) (out []string) {
	lists := []client.ObjectList{
		&metal3.HardwareDataList{}, &metal3.HostFirmwareSettingsList{}, &metal3.HostFirmwareComponentsList{}, &metal3.PreprovisioningImageList{}, &corev1.SecretList{},
	}
	err := wait.PollUntilContextTimeout(b.t.Context(), 100*time.Millisecond, patience.Limit(), true, func(ctx context.Context) (bool, error) {
		out = nil
		for _, l := range lists {
			if err := b.kube.List(ctx, l, client.InNamespace(Namespace)); err != nil {
				return false, err
			}
			err := meta.EachListItem(l, func(o runtime.Object) error {
				x, err := meta.Accessor(o)
				if err == nil && strings.HasPrefix(x.GetName(), name) && x.GetName() != name+"-user" {
					out = append(out, fmt.Sprintf("%T %s %v", o, x.GetName(), x.GetFinalizers()))
				}
				return err
			})
			if err != nil {
				return false, err
			}
		}
		return len(out) == 0, nil
	})
	if err != nil && !wait.Interrupted(err) {
		b.t.Fatal(err)
	}
	return out
}

// published counts the events of each host's object that were published in this stage.
func (b *batch) published(s stage) stage {
	b.t.Helper()
	var l corev1.EventList
	if err := b.kube.List(b.t.Context(), &l, client.InNamespace(Namespace)); err != nil {
		b.t.Fatal(err)
	}
	for _, e := range l.Items {
		name := e.InvolvedObject.Name
		if s.events[name] == nil {
			s.events[name] = map[string]int{}
		}
		if n := e.Count - b.seen[e.UID]; n > 0 {
			b.seen[e.UID] = e.Count
			s.events[name][e.Reason+": "+e.Message] += int(n)
		}
	}
	return s
}
