package builder

import (
	"archive/tar"
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	runtimego "runtime"
	"strings"
	"testing"
	"time"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/metalab-dev/metalab/controller/machineconfig"
	"github.com/metalab-dev/metalab/controller/machineconfig/build"
	"github.com/metalab-dev/metalab/controller/machineconfig/osimage"
	access "github.com/metalab-dev/metalab/controller/machineconfig/registry"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
	"github.com/metalab-dev/metalab/scenarios/registry"
)

// world is an API with a layered pool, and a registry with a base image.
type world struct {
	client.Client
	t      *testing.T
	clock  *clocktesting.FakeClock
	builds *build.Reconciler
	jobs   *Reconciler
	shop   *registry.Server
	host   string // host and port of the registry
}

func newWorld(t *testing.T, containerfile string) *world {
	t.Helper()
	w := &world{t: t, clock: clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))}
	var err error
	if w.shop, err = registry.New(registry.Config{Dir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(w.shop)
	t.Cleanup(server.Close)
	w.host = strings.TrimPrefix(server.URL, "http://")
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{mcv1.Install, corev1.AddToScheme, batchv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	raw := `{"ignition":{"version":"3.5.0"},"storage":{"files":[{"path":"/etc/app.conf","mode":384,"contents":{"source":"data:,configured"}}]},
		"systemd":{"units":[{"name":"app.service","enabled":true,"contents":"[Install]\nWantedBy=multi-user.target\n"}]}}`
	pool := &mcv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}
	pool.Spec.Configuration.Name = "rendered-worker-1"
	secret := func(name, account string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: machineconfig.Namespace, Name: name}, Data: map[string][]byte{corev1.DockerConfigJsonKey: w.shop.DockerConfig(account, w.host)}}
	}
	base := w.pushBase()
	w.Client = fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(&mcv1.MachineConfigPool{}, &mcv1.MachineOSConfig{}, &mcv1.MachineOSBuild{}, &batchv1.Job{}).
		WithObjects(
			secret("push", registry.Pusher), secret("pull", registry.Puller), pool,
			&mcv1.ControllerConfig{ObjectMeta: metav1.ObjectMeta{Name: machineconfig.ControllerConfigName}, Spec: mcv1.ControllerConfigSpec{BaseOSContainerImage: base, PullSecret: &corev1.ObjectReference{Namespace: machineconfig.Namespace, Name: "pull"}}},
			&mcv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{Name: "rendered-worker-1"}, Spec: mcv1.MachineConfigSpec{OSImageURL: base, Config: runtime.RawExtension{Raw: []byte(raw)}}},
			&mcv1.MachineOSConfig{ObjectMeta: metav1.ObjectMeta{Name: "worker", UID: "of"}, Spec: mcv1.MachineOSConfigSpec{
				MachineConfigPool: mcv1.MachineConfigPoolReference{Name: "worker"}, RenderedImagePushSecret: mcv1.ImageSecretObjectReference{Name: "push"},
				RenderedImagePushSpec: mcv1.ImageTagFormat(w.host + "/os/worker:latest"), Containerfile: []mcv1.MachineOSContainerfile{{Content: containerfile}},
			}},
		).Build()
	if w.builds, err = build.New(build.Config{Client: w, Reader: w, Work: queue.Work{Clock: w.clock}}); err != nil {
		t.Fatal(err)
	}
	if w.jobs, err = New(Config{Client: w, Reader: w, Work: queue.Work{Clock: w.clock}}); err != nil {
		t.Fatal(err)
	}
	return w
}

// pushBase pushes a base image with /etc/motd, and returns its pullspec.
func (w *world) pushBase() string {
	w.t.Helper()
	img, err := osimage.Base(tarOf(w.t, "etc/motd", "base\n"), "amd64", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.access(registry.Pusher).Push(w.t.Context(), w.host+"/os/base:1", img); err != nil {
		w.t.Fatal(err)
	}
	return w.host + "/os/base@" + digest.String()
}

func (w *world) access(account string) access.Access {
	return access.Access{Config: w.shop.DockerConfig(account, w.host)}
}

func (w *world) buildController() {
	w.t.Helper()
	for range 6 {
		if _, err := w.builds.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "worker"}}); err != nil {
			w.t.Fatalf("build: Reconcile: %v", err)
		}
	}
}

// builder makes the attempt that is due, and returns when the next is.
func (w *world) builder() time.Duration {
	w.t.Helper()
	out, err := w.jobs.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.job())})
	if err != nil {
		w.t.Fatalf("builder: Reconcile: %v", err)
	}
	return out.RequeueAfter
}

func (w *world) job() *batchv1.Job {
	w.t.Helper()
	var list batchv1.JobList
	if err := w.List(w.t.Context(), &list); err != nil || len(list.Items) != 1 {
		w.t.Fatalf("%d Jobs, %v; want one", len(list.Items), err)
	}
	return &list.Items[0]
}

func (w *world) build() *mcv1.MachineOSBuild {
	w.t.Helper()
	var list mcv1.MachineOSBuildList
	if err := w.List(w.t.Context(), &list); err != nil || len(list.Items) != 1 {
		w.t.Fatalf("%d MachineOSBuilds, %v; want one", len(list.Items), err)
	}
	return &list.Items[0]
}

func (w *world) log() string {
	w.t.Helper()
	var m corev1.ConfigMap
	if err := w.Get(w.t.Context(), client.ObjectKey{Namespace: machineconfig.Namespace, Name: machineconfig.LogPrefix + w.build().Name}, &m); err != nil {
		w.t.Fatal(err)
	}
	return m.Data[machineconfig.LogKey]
}

// TestImageIsUnpackedByOtherClients builds an image as its Job says, and has skopeo and umoci,
// which nobody here wrote, pull and unpack it (statement M28).
func TestImageIsUnpackedByOtherClients(t *testing.T) {
	skopeo, umoci := prerequisites.Need(t, "skopeo"), prerequisites.Need(t, "umoci")
	w := newWorld(t, "FROM configs AS final\nCOPY <<EOF /etc/motd\nbuilt\nEOF\nLABEL team=storage\n")
	w.buildController()
	if after := w.builder(); after != 0 {
		t.Fatalf("the build is not done: next attempt in %s\n%s", after, w.log())
	}
	w.buildController()
	image := string(w.build().Status.DigestedImagePushSpec)
	if !strings.HasPrefix(image, w.host+"/os/worker@sha256:") {
		t.Fatalf("digestedImagePushSpec = %q, log:\n%s", image, w.log())
	}
	dir := t.TempDir()
	auth := filepath.Join(dir, "auth.json")
	if err := os.WriteFile(auth, w.shop.DockerConfig(registry.Puller, w.host), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run(skopeo, "--insecure-policy", "copy", "--authfile", auth, "--src-tls-verify=false", "docker://"+image, "oci:"+dir+"/oci:os")
	run(umoci, "unpack", "--rootless", "--image", dir+"/oci:os", dir+"/bundle")
	root := filepath.Join(dir, "bundle", "rootfs")
	for name, want := range map[string]string{"etc/motd": "built\n", "etc/app.conf": "configured", "etc/systemd/system/app.service": "[Install]\nWantedBy=multi-user.target\n"} {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != want {
			t.Errorf("/%s = %q, %v; want %q", name, got, err, want)
		}
	}
	if fi, err := os.Stat(filepath.Join(root, "etc/app.conf")); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode of /etc/app.conf = %v, %v; want 0600", fi.Mode(), err)
	}
	if got, err := os.Readlink(filepath.Join(root, "etc/systemd/system/multi-user.target.wants/app.service")); err != nil || got != "/etc/systemd/system/app.service" {
		t.Errorf("link of the unit = %q, %v", got, err)
	}
	labels := run(skopeo, "inspect", "--authfile", auth, "--tls-verify=false", "--config", "docker://"+image)
	for _, want := range []string{`"team":"storage"`, `"machineconfig":"rendered-worker-1"`, `"machineconfigpool":"worker"`} {
		if !strings.Contains(strings.ReplaceAll(labels, " ", ""), want) {
			t.Errorf("configuration of the image %s lacks %s", labels, want)
		}
	}
	if log := w.log(); !strings.Contains(log, "PUSH "+w.host+"/os/worker:"+w.build().Name+" sha256:") {
		t.Errorf("log = %q, want the push", log)
	}
}

// TestRebuiltImageHasTheSameDigest builds the same configuration again (statement M35).
func TestRebuiltImageHasTheSameDigest(t *testing.T) {
	w := newWorld(t, "FROM configs AS final\nLABEL a=b\n")
	var before *mcv1.MachineOSBuild
	for round := range 2 {
		w.buildController()
		w.builder()
		w.buildController()
		b := w.build()
		if b.Status.DigestedImagePushSpec == "" {
			t.Fatalf("round %d: no image:\n%s", round, w.log())
		}
		if before != nil && (b.UID == before.UID && b.ResourceVersion == before.ResourceVersion || b.Status.DigestedImagePushSpec != before.Status.DigestedImagePushSpec) {
			t.Errorf("the second build has %s, want another build with %s", b.Status.DigestedImagePushSpec, before.Status.DigestedImagePushSpec)
		}
		before = b
		osConfig := new(mcv1.MachineOSConfig)
		if err := w.Get(t.Context(), client.ObjectKey{Name: "worker"}, osConfig); err != nil {
			t.Fatal(err)
		}
		osConfig.Annotations[machineconfig.RebuildAnnotation] = "true"
		if err := w.Update(t.Context(), osConfig); err != nil {
			t.Fatal(err)
		}
		w.clock.Step(time.Minute)
	}
}

// TestFailedAttemptsAreRepeated shows statement M27: the registry is down for all attempts.
func TestFailedAttemptsAreRepeated(t *testing.T) {
	w := newWorld(t, "")
	w.buildController()
	w.shop.SetFault(registry.Down)
	for i, want := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 0} {
		after := w.builder()
		if j := w.job(); after != want || j.Status.Failed != int32(i+1) || finished(j) != (want == 0) {
			t.Fatalf("attempt %d: next in %s, %d failed, finished %v; want %s, %d", i+1, after, j.Status.Failed, finished(j), want, i+1)
		}
		if again := w.builder(); again != want {
			t.Fatalf("attempt %d: a look before its time returns %s, want %s", i+1, again, want)
		}
		w.clock.Step(after)
	}
	w.buildController()
	c := machineconfig.Condition(&mcv1.MachineConfigPool{Status: w.pool().Status}, mcv1.MachineConfigPoolImageBuildDegraded)
	if c == nil || c.Status != corev1.ConditionTrue || !strings.Contains(c.Message, "Failed to build OS image for pool worker") || !strings.Contains(c.Message, "registry: "+w.host) {
		t.Errorf("ImageBuildDegraded = %+v, want the cause", c)
	}
	if n := strings.Count(w.log(), "ERROR "); n != 4 {
		t.Errorf("the log has %d errors, want 4:\n%s", n, w.log())
	}
}

func (w *world) pool() *mcv1.MachineConfigPool {
	w.t.Helper()
	p := new(mcv1.MachineConfigPool)
	if err := w.Get(w.t.Context(), client.ObjectKey{Name: "worker"}, p); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// TestRegistryThatIsFullAndHasSpaceAgain builds at the second attempt.
func TestRegistryThatIsFullAndHasSpaceAgain(t *testing.T) {
	w := newWorld(t, "FROM configs AS final\nCOPY <<EOF /x\ny\nEOF\n")
	w.buildController()
	w.shop.SetFault(registry.Full)
	if after := w.builder(); after != 10*time.Second || !strings.Contains(w.log(), "no space left on device") {
		t.Fatalf("next attempt in %s, log %q; want 10 s and the answer of the registry", after, w.log())
	}
	w.shop.SetFault(registry.None)
	w.clock.Step(10 * time.Second)
	w.builder()
	w.buildController()
	if w.build().Status.DigestedImagePushSpec == "" {
		t.Errorf("no image at the second attempt:\n%s", w.log())
	}
}

// TestRefusedInstructionEndsTheBuild: another attempt would meet it again.
func TestRefusedInstructionEndsTheBuild(t *testing.T) {
	w := newWorld(t, "FROM configs AS final\nRUN true\n")
	w.buildController()
	w.builder()
	j := w.job()
	if !finished(j) || j.Status.Failed != 1 || j.Status.Conditions[1].Reason != batchv1.JobReasonPodFailurePolicy || !strings.Contains(j.Status.Conditions[1].Message, "starts no program") {
		t.Errorf("status of the Job = %+v, want Failed after one attempt with the reason", j.Status)
	}
}

// TestWrongCredentialsAreNamedAndNotShown pushes with the account that may only pull.
func TestWrongCredentialsAreNamedAndNotShown(t *testing.T) {
	w := newWorld(t, "")
	s := new(corev1.Secret)
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: machineconfig.Namespace, Name: "push"}, s); err != nil {
		t.Fatal(err)
	}
	s.Data[corev1.DockerConfigJsonKey] = w.shop.DockerConfig(registry.Puller, w.host)
	if err := w.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	w.buildController()
	w.builder()
	if log := w.log(); !strings.Contains(log, "refuses the credentials") {
		t.Errorf("log = %q, want the refusal", log)
	}
	credentials, err := access.ParseCredentials(s.Data[corev1.DockerConfigJsonKey])
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(w.log(), credentials[w.host].Password) {
		t.Error("the log shows the password")
	}
}

// TestRestartedBuilderContinues shows statement M38: the builder ended after it had stored the
// digest, and after it had begun.
func TestRestartedBuilderContinues(t *testing.T) {
	w := newWorld(t, "")
	w.buildController()
	j := w.job()
	j.Status.Active, j.Status.StartTime = 1, &metav1.Time{Time: w.clock.Now()}
	if err := w.Status().Update(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	w.builder()
	if !finished(w.job()) {
		t.Fatalf("an attempt that a restart had cut off is not made again: %+v", w.job().Status)
	}
	j = w.job()
	j.Status = batchv1.JobStatus{Active: 1, StartTime: j.Status.StartTime}
	if err := w.Status().Update(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	w.shop.SetFault(registry.Down) // nothing is pushed again
	w.builder()
	if j := w.job(); !finished(j) || j.Status.Succeeded != 1 {
		t.Errorf("status of the Job = %+v, want Complete by the digest that is stored", j.Status)
	}
}

func TestDeletedJobGetsNoDigest(t *testing.T) {
	w := newWorld(t, "")
	w.buildController()
	j := w.job()
	if err := w.Delete(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if err := w.jobs.storeDigest(t.Context(), j, machineconfig.DigestPrefix+w.build().Name, "sha256:x"); !errors.Is(err, errGone) {
		t.Errorf("storeDigest of a deleted Job = %v, want %v", err, errGone)
	}
}

// TestRegistryOutlivesARestart also deletes a tagged image by its digest.
func TestRegistryOutlivesARestart(t *testing.T) {
	dir := t.TempDir()
	var host string
	start := func() (*registry.Server, *httptest.Server) {
		s, err := registry.New(registry.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		h := httptest.NewServer(s)
		host = strings.TrimPrefix(h.URL, "http://")
		return s, h
	}
	s, h := start()
	img, err := osimage.Base(tarOf(t, "a", "b"), "amd64", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := (access.Access{Config: s.DockerConfig(registry.Pusher, host)}).Push(t.Context(), host+"/os/r:tag", img); err != nil {
		t.Fatal(err)
	}
	if err := (access.Access{Config: s.DockerConfig(registry.Puller, host)}).Push(t.Context(), host+"/os/r:other", img); !access.Refused(err) {
		t.Errorf("push by the account that may only pull: %v, want a refusal", err)
	}
	h.Close()
	s, h = start()
	defer h.Close()
	a := access.Access{Config: s.DockerConfig(registry.Pusher, host)}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{host + "/os/r:tag", host + "/os/r@" + digest.String()} {
		if found, err := a.Exists(t.Context(), ref); err != nil || !found {
			t.Errorf("Exists(%s) after a restart = %v, %v; want it", ref, found, err)
		}
	}
	if found, err := (access.Access{}).Exists(t.Context(), host+"/os/r:tag"); !access.Refused(err) {
		t.Errorf("Exists without an account = %v, %v; want a refusal", found, err)
	}
	if err := a.Delete(t.Context(), host+"/os/r@"+digest.String()); err != nil {
		t.Fatal(err)
	}
	if found, err := a.Exists(t.Context(), host+"/os/r:tag"); err != nil || found {
		t.Errorf("Exists of the tag after the deletion of its digest = %v, %v; want none", found, err)
	}
	if resp, err := http.Get("http://" + host + "/v2/"); err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("GET /v2/ without an account = %v, %v; want 401", resp, err)
	} else {
		resp.Body.Close()
	}
}

// tarOf returns an archive of one file.
func tarOf(t *testing.T, name, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))})
	if err == nil {
		_, err = w.Write([]byte(text))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// The deletion of a Job ends its attempt, as it ends the pods of a cluster's (statement M31): the
// image of a configuration that is no longer wanted is not pushed.
func TestDeletionOfAJobEndsItsAttempt(t *testing.T) {
	w := newWorld(t, "FROM configs AS final\n")
	w.buildController()
	j := w.job()
	w.shop.SetFault(registry.Stalled)
	done := make(chan error)
	go func() {
		_, err := w.jobs.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(j)})
		done <- err
	}()
	for w.job().Status.Active == 0 || !w.jobs.runs(j) {
		runtimego.Gosched()
	}
	w.jobs.endDeleted(j, false)
	w.jobs.endDeleted(j, true)
	if err := <-done; err != nil {
		t.Errorf("Reconcile = %v after the deletion, want nil", err)
	}
	w.shop.SetFault(registry.None)
	if got := w.shop.References("os/worker"); len(got) > 0 {
		t.Errorf("the registry has %v, want no image of the Job", got)
	}
	if got := w.job().Status; got.Failed != 0 || len(got.Conditions) > 0 {
		t.Errorf("status = %+v, want no failure", got)
	}
}

// runs reports whether an attempt of a Job is under way.
func (r *Reconciler) runs(j *batchv1.Job) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running[j.UID] != nil
}
