package build

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/machineconfig"
)

// TestMachineOSConfigGetsABuild shows statement M25.
func TestMachineOSConfigGetsABuild(t *testing.T) {
	w := newWorld(t, machineconfig.Skip)
	w.layer("FROM configs AS final\n")
	w.settle()
	b := w.build()
	hash, found := strings.CutPrefix(b.Name, "worker-")
	if !found || len(hash) != 32 || b.Spec.RenderedImagePushSpec != mcv1.ImageTagFormat(repo+":"+b.Name) || b.Spec.MachineConfig.Name != "rendered-worker-1" {
		t.Errorf("build %s of %+v, want worker-HASH, a tag of that name, and the pool's configuration", b.Name, b.Spec)
	}
	if got := w.state(b); got != "Prepared" {
		t.Errorf("conditions = %s, want Prepared", got)
	}
	want := map[string]string{machineconfig.TargetPoolLabel: "worker", machineconfig.RenderedConfigLabel: "rendered-worker-1", machineconfig.OSConfigLabel: "worker"}
	if diff := cmp.Diff(want, b.Labels); diff != "" {
		t.Errorf("labels of the build (-want +got):\n%s", diff)
	}
	if !metav1.IsControlledBy(b, w.osConfig()) {
		t.Errorf("owners = %v, want the MachineOSConfig", b.OwnerReferences)
	}
	var maps1 corev1.ConfigMapList
	var secrets corev1.SecretList
	if err := errors.Join(w.List(t.Context(), &maps1), w.List(t.Context(), &secrets)); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range maps1.Items {
		names = append(names, strings.TrimSuffix(m.Name, b.Name))
		for k := range want {
			if m.Labels[k] != want[k] {
				t.Errorf("labels of %s = %v, want %v", m.Name, m.Labels, want)
			}
		}
	}
	for _, s := range secrets.Items {
		names = append(names, strings.TrimSuffix(s.Name, b.Name))
	}
	jobs := w.jobs()
	if len(jobs) != 1 || jobs[0].Name != JobPrefix+b.Name || *jobs[0].Spec.BackoffLimit != 3 || *jobs[0].Spec.Completions != 1 {
		t.Fatalf("Jobs = %v, want build-%s with backoffLimit 3 and one completion", jobs, b.Name)
	}
	slices.Sort(names)
	if want := []string{TrustBundlePrefix, PullSecretPrefix, ContainerfilePrefix, PolicyPrefix, RegistriesPrefix, PushSecretPrefix, ConfigPrefix, "pull", "push"}; !cmp.Equal(names, want) {
		t.Errorf("objects = %q, want %q", names, want)
	}
	if b.Annotations[machineconfig.JobUIDAnnotation] != string(jobs[0].UID) || b.Status.Builder.Job.Name != jobs[0].Name || !slices.Equal(b.Status.RelatedObjects, []mcv1.ObjectReference{*b.Status.Builder.Job}) {
		t.Errorf("annotations %v, builder %+v, related objects %+v; want those of the Job", b.Annotations, b.Status.Builder, b.Status.RelatedObjects)
	}
	w.degraded("")
}

// TestMissingSecretIsReported shows statement M26, and that the build begins once the Secret is there.
func TestMissingSecretIsReported(t *testing.T) {
	for _, name := range []string{"push", "pull"} {
		w := newWorld(t, machineconfig.Skip)
		if err := w.Delete(t.Context(), secret(name)); err != nil {
			t.Fatal(err)
		}
		w.layer("")
		w.settle()
		w.degraded("there is no Secret " + name)
		if c := apimeta.FindStatusCondition(w.osConfig().Status.Conditions, degradedCondition); c == nil || c.Status != metav1.ConditionTrue || len(w.builds()) != 0 {
			t.Errorf("without %s: MachineOSConfig %+v, %d builds; want Degraded and none", name, c, len(w.builds()))
		}
		w.add(secret(name))
		w.settle()
		w.degraded("")
		w.build()
	}
	w := newWorld(t, machineconfig.Skip)
	bad := secret("push")
	w.get(new(mcv1.MachineConfigPool), "worker")
	if err := w.Delete(t.Context(), bad); err != nil {
		t.Fatal(err)
	}
	bad = secret("push")
	bad.Data[corev1.DockerConfigJsonKey] = []byte("password")
	w.add(bad)
	w.layer("")
	w.settle()
	w.degraded("push has no valid .dockerconfigjson")
}

// TestProgressFollowsTheJob shows statement M27: three failed pods are not the end, four are.
func TestProgressFollowsTheJob(t *testing.T) {
	w := newWorld(t, machineconfig.Skip)
	w.layer("")
	w.settle()
	for _, tt := range []struct {
		change func(*batchv1.JobStatus)
		want   string
	}{
		{func(s *batchv1.JobStatus) { s.Active = 1 }, "Building"},
		{func(s *batchv1.JobStatus) { s.Active, s.Failed = 0, 3 }, "Building"},
		{func(s *batchv1.JobStatus) {
			s.Failed = 4
			s.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Message: "registry is full"}}
		}, "Failed"},
	} {
		w.job(w.build(), tt.change)
		w.settle()
		if got := w.state(w.build()); got != tt.want {
			t.Errorf("conditions = %s, want %s", got, tt.want)
		}
	}
	b := w.build()
	w.degraded(fmt.Sprintf("Failed to build OS image for pool worker (MachineOSBuild: %s): Build Failed: registry is full", b.Name))
	if n := len(w.jobs()); n != 1 {
		t.Errorf("%d Jobs after the failure, want the one that failed", n)
	}
	if b.Status.BuildEnd == nil || !b.Status.BuildEnd.After(b.Status.BuildStart.Time) {
		t.Errorf("build from %v to %v, want an end after the start", b.Status.BuildStart, b.Status.BuildEnd)
	}
	// A change of the configuration is another build.
	w.render("rendered-worker-2", nil)
	w.settle()
	w.degraded("")
	if n := len(w.builds()); n != 2 {
		t.Errorf("%d builds after the repair, want the failed one and another", n)
	}
}

// TestSuccessHandsTheImageOn shows statement M28.
func TestSuccessHandsTheImageOn(t *testing.T) {
	w := newWorld(t, machineconfig.Skip)
	w.layer("")
	w.settle()
	w.job(w.build(), func(s *batchv1.JobStatus) { s.Active = 1 })
	w.finish(w.build(), digestOf(1))
	b, c := w.build(), w.osConfig()
	if got := w.state(b); got != "Succeeded" || b.Status.DigestedImagePushSpec != mcv1.ImageDigestFormat(repo+"@"+digestOf(1)) {
		t.Errorf("build %s with %s, want Succeeded with the digest of the ConfigMap", got, b.Status.DigestedImagePushSpec)
	}
	if c.Status.CurrentImagePullSpec != b.Status.DigestedImagePushSpec || c.Annotations[machineconfig.CurrentBuildAnnotation] != b.Name || c.Status.MachineOSBuild.Name != b.Name || c.Status.ObservedGeneration != 1 {
		t.Errorf("MachineOSConfig = %v, %+v; want the build and its image", c.Annotations, c.Status)
	}
	var left corev1.ConfigMapList
	var secrets corev1.SecretList
	if err := errors.Join(w.List(t.Context(), &left), w.List(t.Context(), &secrets)); err != nil {
		t.Fatal(err)
	}
	if len(left.Items) != 0 || len(secrets.Items) != 2 || len(w.jobs()) != 0 {
		t.Errorf("%d ConfigMaps, %d Secrets and %d Jobs remain, want the user's two Secrets alone", len(left.Items), len(secrets.Items), len(w.jobs()))
	}
	w.degraded("")
}

// TestJobWithoutADigestFails shows statement M28 where the ConfigMap is missing or not a digest.
func TestJobWithoutADigestFails(t *testing.T) {
	w := newWorld(t, machineconfig.Skip)
	w.layer("")
	w.settle()
	w.finish(w.build(), "latest")
	if got := w.state(w.build()); got != "Failed" || w.osConfig().Status.CurrentImagePullSpec != "" {
		t.Errorf("build %s, image %q; want Failed and none", got, w.osConfig().Status.CurrentImagePullSpec)
	}
}

// TestDeletedJobInterruptsTheBuild shows statement M30.
func TestDeletedJobInterruptsTheBuild(t *testing.T) {
	w := newWorld(t, machineconfig.Skip)
	w.layer("")
	w.settle()
	w.job(w.build(), func(s *batchv1.JobStatus) { s.Active = 1 })
	w.settle()
	if err := w.Delete(t.Context(), w.jobs()[0]); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if got := w.state(w.build()); got != "Interrupted" || len(w.jobs()) != 0 {
		t.Errorf("build %s, %d Jobs; want Interrupted and none", got, len(w.jobs()))
	}
	w.degraded("Build Interrupted: its Job was deleted")
}

// TestSecondConfigurationStopsTheFirstBuild shows statement M31.
func TestSecondConfigurationStopsTheFirstBuild(t *testing.T) {
	w := newWorld(t, machineconfig.Skip)
	w.layer("")
	w.settle()
	first := w.build()
	w.job(first, func(s *batchv1.JobStatus) { s.Active = 1 })
	w.render("rendered-worker-2", nil)
	w.settle()
	b := w.build()
	if b.Name == first.Name || b.Spec.MachineConfig.Name != "rendered-worker-2" {
		t.Errorf("build %s of %s, want another of rendered-worker-2 alone", b.Name, b.Spec.MachineConfig.Name)
	}
	if jobs := w.jobs(); len(jobs) != 1 || jobs[0].Name != JobPrefix+b.Name {
		t.Errorf("Jobs = %v, want that of %s alone", jobs, b.Name)
	}
}

// TestFileChangeCarriesTheImageOver shows statement M32 under Write, and that Skip builds: there the image
// is the only carrier of files.
func TestFileChangeCarriesTheImageOver(t *testing.T) {
	files := func(s *mcv1.MachineConfigSpec) {
		s.Config.Raw = []byte(`{"ignition":{"version":"3.5.0"},"storage":{"files":[{"path":"/etc/a"}]}}`)
	}
	for mode, jobs := range map[machineconfig.LayeredFileWrites]int{machineconfig.Write: 0, machineconfig.Skip: 1} {
		w := newWorld(t, mode)
		w.layer("")
		w.settle()
		w.finish(w.build(), digestOf(1))
		w.render("rendered-worker-2", files)
		w.settle()
		if got := len(w.jobs()); got != jobs {
			t.Errorf("%s: %d Jobs after a change of files, want %d", mode, got, jobs)
		}
		c := w.osConfig()
		var b mcv1.MachineOSBuild
		w.get(&b, c.Annotations[machineconfig.CurrentBuildAnnotation])
		current := map[machineconfig.LayeredFileWrites]string{machineconfig.Write: "rendered-worker-2", machineconfig.Skip: "rendered-worker-1"}[mode]
		if b.Spec.MachineConfig.Name != current || c.Status.CurrentImagePullSpec != mcv1.ImageDigestFormat(repo+"@"+digestOf(1)) || w.state(&b) != "Succeeded" {
			t.Errorf("%s: current build of %s with %s, want %s with the first image", mode, b.Spec.MachineConfig.Name, c.Status.CurrentImagePullSpec, current)
		}
	}
}

// TestRequiresRebuild shows statement M33.
func TestRequiresRebuild(t *testing.T) {
	withSpec := func(change func(*mcv1.MachineConfigSpec)) *mcv1.MachineConfig {
		m := &mcv1.MachineConfig{Spec: mcv1.MachineConfigSpec{OSImageURL: "a"}}
		if change != nil {
			change(&m.Spec)
		}
		return m
	}
	for _, tt := range []struct {
		name   string
		change func(*mcv1.MachineConfigSpec)
		want   bool
	}{
		{"nothing", nil, false},
		{"files", func(s *mcv1.MachineConfigSpec) { s.Config.Raw = []byte("{}") }, false},
		{"the default kernel by name", func(s *mcv1.MachineConfigSpec) { s.KernelType = "default" }, false},
		{"kernelArguments", func(s *mcv1.MachineConfigSpec) { s.KernelArguments = []string{"quiet"} }, true},
		{"extensions", func(s *mcv1.MachineConfigSpec) { s.Extensions = []string{"usbguard"} }, true},
		{"kernelType", func(s *mcv1.MachineConfigSpec) { s.KernelType = "realtime" }, true},
		{"osImageURL", func(s *mcv1.MachineConfigSpec) { s.OSImageURL = "b" }, true},
	} {
		if got := RequiresRebuild(withSpec(nil), withSpec(tt.change)); got != tt.want {
			t.Errorf("RequiresRebuild after a change of %s = %v, want %v", tt.name, got, tt.want)
		}
	}
	w := newWorld(t, machineconfig.Write)
	w.layer("")
	w.settle()
	w.finish(w.build(), digestOf(1))
	w.render("rendered-worker-2", func(s *mcv1.MachineConfigSpec) { s.KernelArguments = []string{"quiet"} })
	w.settle()
	if n := len(w.jobs()); n != 1 {
		t.Errorf("%d Jobs after a change of kernelArguments under Write, want 1", n)
	}
}

// TestRevertedConfigurationReusesItsImage shows statement M34.
func TestRevertedConfigurationReusesItsImage(t *testing.T) {
	for _, pruned := range []bool{false, true} {
		w := newWorld(t, machineconfig.Skip)
		w.layer("")
		w.settle()
		first := w.build()
		w.finish(first, digestOf(1))
		w.render("rendered-worker-2", nil)
		w.settle()
		for _, b := range w.builds() {
			if b.Name != first.Name {
				w.finish(b, digestOf(2))
			}
		}
		if pruned {
			delete(w.shop.images, repo+"@"+digestOf(1))
		}
		w.render("rendered-worker-1", nil)
		w.settle()
		jobs, current := len(w.jobs()), w.osConfig().Status.CurrentImagePullSpec
		want, image := 0, mcv1.ImageDigestFormat(repo+"@"+digestOf(1))
		if pruned {
			want, image = 1, mcv1.ImageDigestFormat(repo+"@"+digestOf(2))
		}
		if jobs != want || current != image {
			t.Errorf("image pruned: %v: %d Jobs and the image %s after the revert, want %d and %s", pruned, jobs, current, want, image)
		}
	}
}

// TestRebuildIsDoneOnce shows statement M35.
func TestRebuildIsDoneOnce(t *testing.T) {
	w := newWorld(t, machineconfig.Skip)
	w.layer("")
	w.settle()
	first := w.build()
	w.finish(first, digestOf(1))
	for round := range 2 {
		c := w.osConfig()
		c.Annotations[machineconfig.RebuildAnnotation] = ""
		w.update(c)
		w.settle()
		b := w.build()
		if b.UID == first.UID || len(w.jobs()) != 1 {
			t.Fatalf("round %d: build %s and %d Jobs after the request, want another and one", round, b.UID, len(w.jobs()))
		}
		if _, asked := w.osConfig().Annotations[machineconfig.RebuildAnnotation]; !asked || !w.shop.images[repo+"@"+digestOf(1)] {
			t.Errorf("round %d: the request is gone before its build has succeeded, or the image, which nodes have", round)
		}
		w.finish(b, digestOf(1))
		if _, asked := w.osConfig().Annotations[machineconfig.RebuildAnnotation]; asked || w.build().UID != b.UID || len(w.jobs()) != 0 {
			t.Errorf("round %d: annotations %v, build %s, %d Jobs; want the request gone, the same build and none", round, w.osConfig().Annotations, w.build().UID, len(w.jobs()))
		}
		first = w.build()
	}
}

// The objects of a build end with it, not when the garbage collector comes: the next build of the
// name would find a Job that is not its own.
func TestRebuildDoesNotWaitForGarbageCollection(t *testing.T) {
	w := newWorld(t, machineconfig.Skip)
	w.layer("")
	w.settle()
	w.job(w.build(), func(s *batchv1.JobStatus) {
		s.Failed, s.Conditions = 4, []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Message: "the registry is full"}}
	})
	w.settle()
	first := w.build()
	if got := w.state(first); got != "Failed" {
		t.Fatalf("build %s, want Failed", got)
	}
	c := w.osConfig()
	c.Annotations = map[string]string{machineconfig.RebuildAnnotation: ""}
	w.update(c)
	w.reconcile() // and nobody collects garbage
	b := w.build()
	if got := w.state(b); got != "Prepared" || b.UID == first.UID {
		t.Fatalf("build %s is %s, want another that is Prepared", b.UID, got)
	}
	var objects corev1.ConfigMapList
	if err := w.List(t.Context(), &objects); err != nil {
		t.Fatal(err)
	}
	for _, m := range objects.Items {
		if !metav1.IsControlledBy(&m, b) {
			t.Errorf("ConfigMap %s belongs to the build that was deleted", m.Name)
		}
	}
}

// TestInvalidContainerfileFailsWithoutAJob shows statement M36.
func TestInvalidContainerfileFailsWithoutAJob(t *testing.T) {
	w := newWorld(t, machineconfig.Skip)
	w.layer("RUNN x")
	w.settle()
	if got := w.state(w.build()); got != "Failed" || len(w.jobs()) != 0 {
		t.Errorf("build %s with %d Jobs, want Failed with none", got, len(w.jobs()))
	}
	w.degraded("unknown instruction: RUNN")
}

// TestOptOutDeletesImages shows statement M37: the image goes once no node has it.
func TestOptOutDeletesImages(t *testing.T) {
	w := newWorld(t, machineconfig.Skip)
	w.layer("")
	w.settle()
	w.finish(w.build(), digestOf(1))
	image := repo + "@" + digestOf(1)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{machineconfig.CurrentImage: image}}}
	w.add(n)
	if err := w.Delete(t.Context(), w.osConfig()); err != nil {
		t.Fatal(err)
	}
	w.collect()
	w.settle()
	if b := w.build(); b.DeletionTimestamp == nil || !w.shop.images[image] {
		t.Errorf("build deleted at %v, image there: %v; want it to wait for the node", b.DeletionTimestamp, w.shop.images[image])
	}
	n.Annotations = nil
	w.update(n)
	w.settle()
	if len(w.builds()) != 0 || len(w.shop.images) != 0 {
		t.Errorf("%d builds and the images %v remain, want none", len(w.builds()), w.shop.images)
	}
}

// TestImageOfARecreatedConfigStays shows statement M37: the deletion of an image does not race with the
// MachineOSConfig that wants it again.
func TestImageOfARecreatedConfigStays(t *testing.T) {
	w := newWorld(t, machineconfig.Skip)
	w.layer("")
	w.settle()
	w.finish(w.build(), digestOf(1))
	if err := w.Delete(t.Context(), w.osConfig()); err != nil {
		t.Fatal(err)
	}
	w.layer("")
	w.collect()
	w.settle()
	if !w.shop.images[repo+"@"+digestOf(1)] {
		t.Error("the image is deleted, though the new MachineOSConfig builds the same")
	}
	w.finish(w.build(), digestOf(1))
	if got := w.state(w.build()); got != "Succeeded" {
		t.Errorf("the new build is %s, want Succeeded", got)
	}
}

// TestCrashAtAnyWriteIsHarmless shows statement M38: the controller is ended before each of its writes, and
// there is one build with one Job all the same.
func TestCrashAtAnyWriteIsHarmless(t *testing.T) {
	for n := 1; ; n++ {
		w := newWorld(t, machineconfig.Skip)
		w.layer("")
		count, jobs := 0, map[types.UID]bool{}
		crash := errors.New("crash")
		w.fail = func(verb string, o client.Object) error {
			if count++; count == n {
				return crash
			}
			return nil
		}
		step := func() {
			for range 12 {
				_, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "worker"}})
				if err != nil && !errors.Is(err, crash) {
					t.Fatalf("crash before write %d: %v", n, err)
				}
				for _, j := range w.jobs() {
					jobs[j.UID] = true
				}
			}
		}
		step()
		writes := count
		w.fail = nil
		w.finish(w.build(), digestOf(1))
		if len(jobs) != 1 || w.state(w.build()) != "Succeeded" {
			t.Errorf("crash before write %d: Jobs %v, build %s; want one Job and Succeeded", n, slices.Collect(maps.Keys(jobs)), w.state(w.build()))
		}
		if n > writes {
			if n < 10 {
				t.Fatalf("the test ended after %d writes: a build has more", writes)
			}
			return
		}
	}
}

func TestDegradedPoolBlocksNewBuilds(t *testing.T) {
	for _, tt := range []struct {
		conditionType mcv1.MachineConfigPoolConditionType
		mode          machineconfig.LayeredFileWrites
		blocks        bool
	}{
		{mcv1.MachineConfigPoolRenderDegraded, machineconfig.Skip, true},
		{mcv1.MachineConfigPoolNodeDegraded, machineconfig.Write, true},
		{mcv1.MachineConfigPoolNodeDegraded, machineconfig.Skip, false}, // a build is its repair
		{mcv1.MachineConfigPoolImageBuildDegraded, machineconfig.Write, false},
	} {
		w := newWorld(t, tt.mode)
		p := w.pool()
		machineconfig.SetCondition(p, tt.conditionType, corev1.ConditionTrue, "x", "x", metav1.Now())
		if err := w.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		w.layer("")
		w.settle()
		if got := len(w.builds()) == 0; got != tt.blocks {
			t.Errorf("%s under %s blocks a build: %v, want %v", tt.conditionType, tt.mode, got, tt.blocks)
		}
	}
}
