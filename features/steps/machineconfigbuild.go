package steps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cucumber/godog"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/machineconfig"
	access "github.com/metalab-dev/metalab/controller/machineconfig/registry"
	"github.com/metalab-dev/metalab/lab"
	"github.com/metalab-dev/metalab/scenarios/registry"
)

// layeredPool is the pool of the scenarios about images, and the name of its MachineOSConfig.
const layeredPool = machineconfig.WorkerPool

// registerImageBuilds binds the steps on the images that are built of a pool's configuration.
func (s *scenario) registerImageBuilds(sc *stepRegistry) {
	sc.Step(`^a lab with machine configuration$`, "gives the scenario a lab of the family machineconfig", func(ctx context.Context) error {
		return s.startKind(ctx, 1, labKind{with: config.MachineConfig})
	})
	sc.Step(`^the operator applies the machine config "([^"]*)" with the file "([^"]*)": "([^"]*)"$`, "creates a MachineConfig of the pool worker with a file", func(ctx context.Context, name, path, content string) error {
		return s.create(ctx, workerConfig(name, func(m *mcv1.MachineConfigSpec) {
			m.Config = runtime.RawExtension{Raw: fmt.Appendf(nil, `{"ignition":{"version":"3.5.0"},"storage":{"files":[{"path":%q,"contents":{"source":"data:,%s"}}]}}`, path, content)}
		}))
	})
	sc.Step(`^the operator applies the machine config "([^"]*)" with the kernel argument "([^"]*)"$`, "creates a MachineConfig of the pool worker with a kernel argument", func(ctx context.Context, name, argument string) error {
		return s.create(ctx, workerConfig(name, func(m *mcv1.MachineConfigSpec) { m.KernelArguments = []string{argument} }))
	})
	sc.Step(`^the operator deletes the machine config "([^"]*)"$`, "deletes a MachineConfig", func(ctx context.Context, name string) error {
		return s.kube.Delete(ctx, workerConfig(name, nil))
	})
	sc.Step(`^the operator layers the pool with:$`, "creates the MachineOSConfig of the pool worker with this Containerfile", func(ctx context.Context, text *godog.DocString) error {
		return s.layer(ctx, lab.PushSecret, text.Content)
	})
	sc.Step(`^the operator layers the pool with the push secret "([^"]*)"$`, "creates the MachineOSConfig of the pool worker with this Secret", func(ctx context.Context, name string) error {
		return s.layer(ctx, name, "FROM configs AS final\n")
	})
	sc.Step(`^the operator creates the push secret "([^"]*)"$`, "creates a Secret with the account of the lab's registry that may push", s.createPushSecret)
	sc.Step(`^the operator selects LayeredFileWrites (Skip|Write)$`, "sets the annotation of the ControllerConfig", func(ctx context.Context, mode string) error {
		c := &mcv1.ControllerConfig{ObjectMeta: metav1.ObjectMeta{Name: machineconfig.ControllerConfigName}}
		return s.merge(ctx, c, `{"metadata":{"annotations":{%q:%q}}}`, machineconfig.LayeredFileWritesAnnotation, mode)
	})
	sc.Step(`^the operator requests a rebuild$`, "sets the annotation rebuild of the MachineOSConfig", func(ctx context.Context) error {
		return s.merge(ctx, &mcv1.MachineOSConfig{ObjectMeta: metav1.ObjectMeta{Name: layeredPool}}, `{"metadata":{"annotations":{%q:"true"}}}`, machineconfig.RebuildAnnotation)
	})
	sc.Step(`^the request for a rebuild is removed$`, "waits until the MachineOSConfig does not have the annotation rebuild", func(ctx context.Context) error {
		return s.awaitOSConfig(ctx, "without a request", func(c *mcv1.MachineOSConfig) bool {
			_, asked := c.Annotations[machineconfig.RebuildAnnotation]
			return !asked
		})
	})
	sc.Step(`^the operator deletes the MachineOSConfig$`, "deletes the MachineOSConfig of the pool worker", func(ctx context.Context) error {
		return s.kube.Delete(ctx, &mcv1.MachineOSConfig{ObjectMeta: metav1.ObjectMeta{Name: layeredPool}})
	})
	sc.Step(`^the registry is (up|down|full)$`, "makes the lab's registry close each connection, refuse what it would store, or work", func(what string) {
		r, _ := s.lab.Registry()
		r.SetFault(map[string]registry.Fault{"up": registry.None, "down": registry.Down, "full": registry.Full}[what])
	})
	sc.Step(`^the pool has an image of its configuration$`, "waits until the build of the pool's configuration has succeeded, and the registry has its image", func(ctx context.Context) error {
		return s.awaitImage(ctx, func(image string) bool { return true })
	})
	sc.Step(`^the pool has another image of its configuration$`, "the same, with another image than the first of the scenario", func(ctx context.Context) error {
		return s.awaitImage(ctx, func(image string) bool { return image != s.firstImage })
	})
	sc.Step(`^the pool has its first image again$`, "waits until the build of the pool's configuration has succeeded with the first image of the scenario", func(ctx context.Context) error {
		return s.awaitImage(ctx, func(image string) bool { return image == s.firstImage })
	})
	sc.Step(`^the image has the label "([^"]*)": "([^"]*)"$`, "pulls the image of the pool and reads its configuration", func(ctx context.Context, name, want string) error {
		img, err := s.pullImage(ctx)
		if err != nil {
			return err
		}
		c, err := img.ConfigFile()
		if err == nil && c.Config.Labels[name] != want {
			err = fmt.Errorf("its labels are %v", c.Config.Labels)
		}
		return err
	})
	sc.Step(`^the image has the file "([^"]*)": "([^"]*)"$`, "pulls the image of the pool and reads a file of its layers", s.imageHasFile)
	sc.Step(`^the registry has lost the image$`, "waits until the registry does not have the first image of the scenario", func(ctx context.Context) error {
		return eventually(ctx, "the image is deleted", func(ctx context.Context) (bool, string, error) {
			found, err := s.registryAccess(registry.Puller).Exists(ctx, s.firstImage)
			return !found, s.firstImage, err
		})
	})
	sc.Step(`^the log of the build contains "([^"]*)"$`, "waits until the ConfigMap with the log of a build of the pool contains this text", s.buildLogContains)
	sc.Step(`^the build is Failed: "([^"]*)"$`, "waits until a build of the pool has failed with this text in its message", s.buildFails)
	sc.Step(`^the Job of the build is removed$`, "waits until no build has a Job", func(ctx context.Context) error {
		return eventually(ctx, "no Job", func(ctx context.Context) (bool, string, error) {
			var list batchv1.JobList
			err := s.kube.List(ctx, &list, client.InNamespace(machineconfig.Namespace))
			return len(list.Items) == 0, fmt.Sprintf("%d Jobs", len(list.Items)), err
		})
	})
	sc.Step(`^the pool is (ImageBuildDegraded|RenderDegraded): "([^"]*)"$`, "waits until a condition of the pool worker is True with this text in its message", func(ctx context.Context, conditionType, text string) error {
		return s.awaitPool(ctx, conditionType, func(c *mcv1.MachineConfigPoolCondition) bool {
			return c.Status == corev1.ConditionTrue && strings.Contains(c.Message, text)
		})
	})
	sc.Step(`^the pool renders again$`, "waits until RenderDegraded of the pool worker is False", func(ctx context.Context) error {
		return s.awaitPool(ctx, string(mcv1.MachineConfigPoolRenderDegraded), func(c *mcv1.MachineConfigPoolCondition) bool { return c.Status == corev1.ConditionFalse })
	})
}

// scenarioLabel marks the MachineConfigs of a scenario.
const scenarioLabel = "metalab.dev/scenario"

func workerConfig(name string, change func(*mcv1.MachineConfigSpec)) *mcv1.MachineConfig {
	m := &mcv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{mcv1.MachineConfigRoleLabelKey: layeredPool, scenarioLabel: ""}}}
	if change != nil {
		change(&m.Spec)
	}
	return m
}

func (s *scenario) layer(ctx context.Context, secret, containerfile string) error {
	_, host := s.lab.Registry()
	return s.create(ctx, &mcv1.MachineOSConfig{
		ObjectMeta: metav1.ObjectMeta{Name: layeredPool},
		Spec: mcv1.MachineOSConfigSpec{
			MachineConfigPool: mcv1.MachineConfigPoolReference{Name: layeredPool}, ImageBuilder: mcv1.MachineOSImageBuilder{ImageBuilderType: mcv1.JobBuilder},
			RenderedImagePushSecret: mcv1.ImageSecretObjectReference{Name: secret}, RenderedImagePushSpec: mcv1.ImageTagFormat(host + "/os/worker:latest"),
			Containerfile: []mcv1.MachineOSContainerfile{{Content: containerfile}},
		},
	})
}

func (s *scenario) createPushSecret(ctx context.Context, name string) error {
	r, host := s.lab.Registry()
	return s.create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: machineconfig.Namespace, Name: name, Labels: map[string]string{scenarioLabel: ""}}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: r.DockerConfig(registry.Pusher, host)},
	})
}

func (s *scenario) registryAccess(account string) access.Access {
	r, host := s.lab.Registry()
	return access.Access{Config: r.DockerConfig(account, host)}
}

func (s *scenario) awaitPool(ctx context.Context, conditionType string, ok func(*mcv1.MachineConfigPoolCondition) bool) error {
	return eventually(ctx, conditionType+" of the pool", func(ctx context.Context) (bool, string, error) {
		var p mcv1.MachineConfigPool
		if err := s.kube.Get(ctx, client.ObjectKey{Name: layeredPool}, &p); err != nil {
			return false, "", err
		}
		c := machineconfig.Condition(&p, mcv1.MachineConfigPoolConditionType(conditionType))
		return c != nil && ok(c), fmt.Sprintf("%+v", p.Status.Conditions), nil
	})
}

func (s *scenario) awaitOSConfig(ctx context.Context, what string, ok func(*mcv1.MachineOSConfig) bool) error {
	return eventually(ctx, "the MachineOSConfig is "+what, func(ctx context.Context) (bool, string, error) {
		var c mcv1.MachineOSConfig
		err := s.kube.Get(ctx, client.ObjectKey{Name: layeredPool}, &c)
		return err == nil && ok(&c), fmt.Sprintf("%v %+v", c.Annotations, c.Status), err
	})
}

// awaitImage waits until the pool has an image of its present configuration that ok accepts.
func (s *scenario) awaitImage(ctx context.Context, ok func(image string) bool) error {
	image := ""
	err := eventually(ctx, "the image of the pool", func(ctx context.Context) (bool, string, error) {
		var c mcv1.MachineOSConfig
		var p mcv1.MachineConfigPool
		if err := errors.Join(s.kube.Get(ctx, client.ObjectKey{Name: layeredPool}, &c), s.kube.Get(ctx, client.ObjectKey{Name: layeredPool}, &p)); err != nil {
			return false, "", err
		}
		state := fmt.Sprintf("%v %+v", c.Annotations, c.Status)
		current, err := s.currentConfigOf(ctx, &c)
		if err != nil || current == "" {
			return false, state, err
		}
		image = string(c.Status.CurrentImagePullSpec)
		rendered, err := s.renderedCurrent(ctx, &p)
		return err == nil && rendered && current == p.Spec.Configuration.Name && ok(image), state, err
	})
	if err != nil {
		return err
	}
	if s.firstImage == "" {
		s.firstImage = image
	}
	found, err := s.registryAccess(registry.Puller).Exists(ctx, image)
	if err == nil && !found {
		err = fmt.Errorf("the registry lacks %s", image)
	}
	return err
}

// currentConfigOf returns the configuration of the current build, "" without one.
func (s *scenario) currentConfigOf(ctx context.Context, c *mcv1.MachineOSConfig) (string, error) {
	name := c.Annotations[machineconfig.CurrentBuildAnnotation]
	if name == "" || c.Status.ObservedGeneration < c.Generation {
		return "", nil
	}
	var b mcv1.MachineOSBuild
	err := s.kube.Get(ctx, client.ObjectKey{Name: name}, &b)
	if apierrors.IsNotFound(err) || err == nil && !apimeta.IsStatusConditionTrue(b.Status.Conditions, string(mcv1.MachineOSBuildSucceeded)) {
		return "", nil
	}
	return b.Spec.MachineConfig.Name, err
}

// renderedCurrent reports whether the pool's configuration is of the MachineConfigs as they are.
func (s *scenario) renderedCurrent(ctx context.Context, p *mcv1.MachineConfigPool) (bool, error) {
	var list mcv1.MachineConfigList
	if err := s.kube.List(ctx, &list, client.MatchingLabels{mcv1.MachineConfigRoleLabelKey: layeredPool}); err != nil {
		return false, err
	}
	source := map[string]bool{}
	for _, o := range p.Spec.Configuration.Source {
		source[o.Name] = true
	}
	for _, m := range list.Items {
		if !source[m.Name] {
			return false, nil
		}
	}
	return len(source) == len(list.Items), nil
}

func (s *scenario) pullImage(ctx context.Context) (v1.Image, error) {
	var c mcv1.MachineOSConfig
	if err := s.kube.Get(ctx, client.ObjectKey{Name: layeredPool}, &c); err != nil {
		return nil, err
	}
	return s.registryAccess(registry.Puller).Pull(ctx, string(c.Status.CurrentImagePullSpec))
}

func (s *scenario) imageHasFile(ctx context.Context, path, want string) error {
	img, err := s.pullImage(ctx)
	if err != nil {
		return err
	}
	return imageFile(img, strings.TrimPrefix(path, "/"), func(content io.Reader) error {
		b, err := io.ReadAll(content)
		if err == nil && string(b) != want {
			err = fmt.Errorf("%s has %q", path, b)
		}
		return err
	})
}

func (s *scenario) buildLogContains(ctx context.Context, text string) error {
	return eventually(ctx, "the log of the build", func(ctx context.Context) (bool, string, error) {
		var list corev1.ConfigMapList
		err := s.kube.List(ctx, &list, client.InNamespace(machineconfig.Namespace), client.MatchingLabels{machineconfig.OSConfigLabel: layeredPool})
		log := ""
		for _, m := range list.Items {
			log += m.Data[machineconfig.LogKey]
		}
		return strings.Contains(log, text), log, err
	})
}

func (s *scenario) buildFails(ctx context.Context, text string) error {
	return eventually(ctx, "a failed build", func(ctx context.Context) (bool, string, error) {
		var list mcv1.MachineOSBuildList
		err := s.kube.List(ctx, &list)
		state := ""
		for _, b := range list.Items {
			c := apimeta.FindStatusCondition(b.Status.Conditions, string(mcv1.MachineOSBuildFailed))
			if c != nil && c.Status == metav1.ConditionTrue && strings.Contains(c.Message, text) {
				return true, "", nil
			}
			state += fmt.Sprintf("%s %+v\n", b.Name, b.Status.Conditions)
		}
		return false, state, err
	})
}

// deleteImageBuilds removes what the steps above have made: the registry works, and the pool is
// as it was at first.
func (b *testLab) deleteImageBuilds(ctx context.Context) error {
	r, _ := b.lab.Registry()
	r.SetFault(registry.None)
	c := &mcv1.ControllerConfig{ObjectMeta: metav1.ObjectMeta{Name: machineconfig.ControllerConfigName}}
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, machineconfig.LayeredFileWritesAnnotation))
	err := errors.Join(
		b.kube.Patch(ctx, c, patch),
		b.kube.DeleteAllOf(ctx, &mcv1.MachineOSConfig{}),
		b.kube.DeleteAllOf(ctx, &mcv1.MachineConfig{}, client.HasLabels{scenarioLabel}),
		b.kube.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(machineconfig.Namespace), client.HasLabels{scenarioLabel}),
	)
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		var builds mcv1.MachineOSBuildList
		var jobs batchv1.JobList
		err := errors.Join(b.kube.List(ctx, &builds), b.kube.List(ctx, &jobs, client.InNamespace(machineconfig.Namespace)))
		return len(builds.Items)+len(jobs.Items) == 0, err
	})
}
