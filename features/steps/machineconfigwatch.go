package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/machineconfig"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// targetWatch has the targets of a Node in the order of its versions. Each version of the Node is
// seen: a step that only looks now and then would miss one between two patches.
type targetWatch struct {
	stop func()

	mu      sync.Mutex
	version uint64       // resourceVersion of the Node that was seen last
	seen    []nodeTarget // since the last check, after the one that was last before
	problem error
}

// watchTargets begins to watch the server's Node.
func (s *scenario) watchTargets(ctx context.Context) error {
	w, err := s.kube.Watch(ctx, &corev1.NodeList{}, client.MatchingFields{"metadata.name": s.server.Name})
	if err != nil {
		return err
	}
	t := &targetWatch{}
	var group sync.WaitGroup
	group.Go(func() {
		for e := range w.ResultChan() {
			if n, ok := e.Object.(*corev1.Node); ok && e.Type != watch.Deleted {
				t.add(n)
			}
		}
	})
	t.stop = func() { w.Stop(); group.Wait() }
	s.targetWatch = t
	return nil
}

// add notes a version of the Node.
func (t *targetWatch) add(n *corev1.Node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	target, a := targetOf(n), n.Annotations
	if a[machineconfig.DesiredImage] != target.image && t.problem == nil {
		t.problem = fmt.Errorf("a version of the Node has %s %q and %s %q: both come in one patch", machineconfig.DesiredOSImage, target.image, machineconfig.DesiredImage, a[machineconfig.DesiredImage])
	}
	version, err := strconv.ParseUint(n.ResourceVersion, 10, 64)
	if err != nil && t.problem == nil {
		t.problem = err
	}
	if t.version = version; len(t.seen) == 0 || t.seen[len(t.seen)-1] != target {
		t.seen = append(t.seen, target)
	}
}

// check returns an error when a version of the Node had an image without the configuration that
// it was built of, or, in a layered pool, got a configuration without an image. done means that
// the watch has seen a version.
func (t *targetWatch) check(version string, layered bool, builds []mcv1.MachineOSBuild) (done bool, err error) {
	want, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.problem != nil || t.version < want || len(t.seen) == 0 {
		return false, t.problem
	}
	for i, target := range t.seen {
		made := slices.ContainsFunc(builds, func(b mcv1.MachineOSBuild) bool {
			return b.Spec.MachineConfig.Name == target.config && string(b.Status.DigestedImagePushSpec) == target.image
		})
		switch {
		case !layered || i == 0: // how it was at the last check
		case target.image != "" && !made:
			return false, fmt.Errorf("a version of the Node has the configuration %s and the image %s, which was not built of it: both come in one patch", target.config, target.image)
		case target.image == "" && target.config != t.seen[i-1].config:
			return false, fmt.Errorf("a version of the Node has the configuration %s without its image: both come in one patch", target.config)
		}
	}
	t.seen = t.seen[len(t.seen)-1:]
	return true, nil
}

// registerFileWatch binds the steps on writes to the files of a configuration.
func (s *scenario) registerFileWatch(sc *stepRegistry) {
	sc.Step(`^the server's files are watched until it boots$`, "notes each file that anybody writes in the running system, from now until the system ends", s.watchFiles)
	sc.NegativeStep(`^nothing has written a file of the configuration before the boot$`, "waits until the server has booted since its files are watched, and asserts that in the system before nobody has written a file, unit or drop-in of the pool's present configuration, though the daemon has written its own files", s.configurationWasNotWritten)
	sc.Step(`^every file of the configuration comes from the image$`, "asserts that each file, unit and drop-in of the pool's present configuration is there, and is none of the local ones", s.configurationComesFromImage)
}

// fileWatch has the files that were written in a system.
type fileWatch struct {
	boots uint64 // boot count of the server when the watch began
	stop  func()

	mu      sync.Mutex
	written map[string]bool
}

func (s *scenario) watchFiles(ctx context.Context) (err error) {
	if s.fileWatch != nil {
		return errors.New("the files are watched already")
	}
	f := &fileWatch{boots: s.machine().Boots, written: map[string]bool{}}
	f.stop, err = s.lab.WatchFiles(ctx, s.server.Name, func(local []string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, name := range local {
			f.written[name] = true
		}
	})
	s.fileWatch = f
	return err
}

// daemonFile is a file that the daemon writes in each update.
const daemonFile = "/etc/machine-config-daemon/currentconfig"

func (s *scenario) configurationWasNotWritten(ctx context.Context) error {
	f := s.fileWatch
	if f == nil {
		return errors.New("the files were not watched")
	}
	err := eventually(ctx, "the server has booted", func(context.Context) (bool, string, error) {
		v := s.machine()
		return v.Boots > f.boots && v.Phase == machine.Running, fmt.Sprintf("boot %d, %s", v.Boots, v.Phase), nil
	})
	if err != nil {
		return err
	}
	all, err := s.configurationFiles(ctx)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.written[daemonFile] {
		return fmt.Errorf("the watch has not seen %s, which the daemon writes: it has seen %d files", daemonFile, len(f.written))
	}
	for _, name := range all {
		if f.written[name] {
			return fmt.Errorf("%s was written before the boot", name)
		}
	}
	return nil
}

func (s *scenario) configurationComesFromImage(ctx context.Context) error {
	all, err := s.configurationFiles(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range all {
		errs = append(errs, s.fileIsLocal(ctx, name, false))
	}
	return errors.Join(errs...)
}

// configurationFiles returns the paths of the files, units and drop-ins of the pool's present
// configuration.
func (s *scenario) configurationFiles(ctx context.Context) (out []string, err error) {
	p, m := &mcv1.MachineConfigPool{}, &mcv1.MachineConfig{}
	if err := s.kube.Get(ctx, client.ObjectKey{Name: s.pool()}, p); err != nil {
		return nil, err
	}
	if err := s.kube.Get(ctx, client.ObjectKey{Name: p.Spec.Configuration.Name}, m); err != nil {
		return nil, err
	}
	var config struct {
		Storage struct {
			Files []struct {
				Path string `json:"path"`
			} `json:"files"`
		} `json:"storage"`
		Systemd struct {
			Units []struct {
				Name     string  `json:"name"`
				Contents *string `json:"contents"`
				Dropins  []struct {
					Name string `json:"name"`
				} `json:"dropins"`
			} `json:"units"`
		} `json:"systemd"`
	}
	if err := json.Unmarshal(m.Spec.Config.Raw, &config); err != nil {
		return nil, fmt.Errorf("MachineConfig %s: %w", m.Name, err)
	}
	for _, f := range config.Storage.Files {
		out = append(out, f.Path)
	}
	const units = "/etc/systemd/system/"
	for _, u := range config.Systemd.Units {
		if u.Contents != nil {
			out = append(out, units+u.Name)
		}
		for _, d := range u.Dropins {
			out = append(out, units+u.Name+".d/"+d.Name)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("MachineConfig %s has no file", m.Name)
	}
	slices.Sort(out)
	return out, nil
}
