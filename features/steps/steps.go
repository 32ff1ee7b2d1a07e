// Package steps binds the phrases of the feature files to a live lab, by noun:
// hosts (what an operator sees in the Kubernetes API), servers (what stands in
// the rack), images and controllers. A scenario has servers of its own that no
// other has used, in a lab at the speed at which there is work; it owns how labs
// are shared among scenarios, and it knows no formatter and no test.
//
// Other people's suites register these steps beside their own:
//
//	ScenarioInitializer: func(sc *godog.ScenarioContext) {
//		lab := steps.Register(sc)
//		sc.Step(`^our inventory lists the server$`, func(ctx context.Context) error {
//			return inventory.Has(lab.Server().Name)
//		})
//	},
package steps

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cucumber/godog"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/emulator/lab/control"
	"github.com/metalab-dev/metalab/emulator/lab/journal"
	"github.com/metalab-dev/metalab/emulator/lab/rack"
	"github.com/metalab-dev/metalab/scenarios/world"
)

// timeout is how long, in real time, a step waits for what must come.
const timeout = 60 * time.Second

// scenario is what the steps of one scenario share.
type scenario struct {
	labs           *Labs // where labs come from; nil: the scenario has one of its own
	testLab        *testLab
	dir            string // of the lab
	world          *world.World
	kube           client.WithWatch
	servers        []control.Host // of this scenario
	server         control.Host   // the first of them, which the scenario is about
	stop           context.CancelFunc
	recorder       *recorder
	faults         []string     // IDs of the rules that the scenario has added
	requestsFrom   journal.Mark // from where on it matters what its BMC is asked
	resetsFrom     journal.Mark // from where on its resets count
	startsBefore   starts       // when the operator began to count them
	preparation    *preparation // that was asked for all at once
	settledVersion string       // version of the host when it was not written any longer
	bootsBefore    uint64       // of the server, when it was last asked for an image

	receiver       *receiver      // of events; nil: nobody has subscribed
	kubectlOutput  string         // by kubectl
	admissionError error          // of what was tried; nil: it was accepted
	schemas        map[int]string // of servers' firmware, as they were compared, by their number
}

// register binds all steps.
func (s *scenario) register(b *stepRegistry) {
	for _, noun := range []struct {
		about string
		bind  func(*stepRegistry)
	}{
		{"lab", s.registerLabs}, {"host", s.registerHosts}, {"object", s.registerObjects}, {"server", s.registerServers},
		{"BMC", s.registerFaults}, {"image", s.registerImages}, {"configuration", s.registerConfig}, {"controller", s.registerControllers},
		{"network boot", s.registerNetboot}, {"RAID", s.registerRAID},
		{"data image", s.registerDataImages}, {"subscription", s.registerSubscriptions},
		{"pre-provisioning image", s.registerPreprovisioning}, {"admission", s.registerAdmission}, {"kubectl", s.registerKubectl},
		{"firmware", s.registerFirmware}, {"mishaps", s.registerMishaps}, {"quirk", s.registerQuirks},
	} {
		b.about = noun.about
		noun.bind(b)
	}
}

// Register binds all steps to a scenario, which has a lab of its own as soon as
// a step asks for one. Use Labs where many scenarios are run.
func Register(sc *godog.ScenarioContext) *Scenario {
	return bind(sc, &scenario{recorder: new(recorder)})
}

func bind(sc *godog.ScenarioContext, s *scenario) *Scenario {
	s.register(&stepRegistry{sc: sc})
	sc.After(func(ctx context.Context, _ *godog.Scenario, err error) (context.Context, error) {
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, s.recorder.String())
		}
		return ctx, errors.Join(err, s.end(context.WithoutCancel(ctx), err == nil))
	})
	return &Scenario{s}
}

func (s *scenario) registerLabs(sc *stepRegistry) {
	sc.Step(`^a lab with (\d+) servers?$`, "gives the scenario servers that nobody has used, their BMCs, a Kubernetes API and the controllers",
		func(ctx context.Context, servers int) error { return s.start(ctx, servers, "") })
	sc.Step(`^a lab with (\d+) servers? of the model "([^"]*)"$`, "the same, with servers of a hardware profile: see labctl up --help",
		s.start)
	sc.Step(`^a server of the model "([^"]*)" in a lab of all models$`, "the same, with one server of a lab that has some of each hardware profile",
		func(ctx context.Context, model string) error {
			return s.startKind(ctx, 1, labKind{profile: model, allModels: true})
		})
	sc.Step(`^a lab with (\d+) servers? whose controllers build pre-provisioning images$`, "the same, with controllers that have a PreprovisioningImage for each host",
		func(ctx context.Context, servers int) error {
			return s.startKind(ctx, servers, labKind{preprovisioning: true})
		})
}

func (s *scenario) start(ctx context.Context, servers int, profile string) error {
	return s.startKind(ctx, servers, labKind{profile: profile})
}

// startMixed gives the scenario servers of two models, in this order.
func (s *scenario) startMixed(ctx context.Context, first int, model string, more int, other string) error {
	r := rack.Default(first)
	r.Hosts[0].Profile = model
	second := r.Hosts[0]
	second.Count, second.Profile, second.NamePrefix = more, other, "other"
	r.Hosts = append(r.Hosts, second)
	return s.startKind(ctx, first+more, labKind{rack: &r})
}

func (s *scenario) startKind(ctx context.Context, servers int, kind labKind) (err error) {
	if s.testLab != nil {
		return errors.New("the scenario has a lab already")
	}
	if s.labs != nil {
		s.testLab, err = s.labs.acquire(ctx, kind, servers)
	} else {
		s.testLab, err = openMatchingLab(ctx, kind, servers)
	}
	if err != nil {
		return err
	}
	s.dir, s.world, s.kube = s.testLab.dir, s.testLab.world, s.testLab.kube
	s.testLab.downloads.resetCount()
	s.testLab.replaced = nil // that was another server
	s.servers = s.testLab.assign(servers)
	s.server = s.servers[0]
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	return s.recorder.start(ctx, s.kube, s.server.Name)
}

// end gives the lab back, or ends it.
func (s *scenario) end(ctx context.Context, well bool) error {
	if s.testLab == nil {
		return nil
	}
	if s.receiver != nil {
		s.receiver.Close()
	}
	if s.preparation != nil {
		s.preparation.stop()
		s.preparation.done.Wait()
	}
	s.stop()
	s.recorder.wait()
	if s.labs == nil {
		return s.testLab.close()
	}
	return s.labs.release(ctx, s.testLab, s.servers, well)
}

// Scenario is what the steps of other people's suites see of a scenario. Its
// methods are for steps that come after the one that asks for a lab.
type Scenario struct{ s *scenario }

// World is the running lab.
func (s *Scenario) World() *world.World { return s.s.world }

// Kubernetes is a client of the lab's Kubernetes API.
func (s *Scenario) Kubernetes() client.WithWatch { return s.s.kube }

// Server describes the server that the scenario is about, as `labctl hosts`
// does. Its BareMetalHost has its name.
func (s *Scenario) Server() control.Host { return s.s.server }

// Servers describes all servers of the scenario.
func (s *Scenario) Servers() []control.Host { return s.s.servers }

// Host reads the server's BareMetalHost.
func (s *Scenario) Host(ctx context.Context) (*metal3.BareMetalHost, error) { return s.s.read(ctx) }

// Change edits the BareMetalHost's specification or metadata.
func (s *Scenario) Change(ctx context.Context, edit func(*metal3.BareMetalHost)) error {
	return s.s.change(ctx, edit)
}

// Eventually waits until ok is true. What ok last said is part of the error.
func Eventually(ctx context.Context, what string, ok func(context.Context) (done bool, is string, err error)) error {
	return eventually(ctx, what, ok)
}

func eventually(ctx context.Context, what string, ok func(context.Context) (bool, string, error)) error {
	last := ""
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, timeout, true, func(ctx context.Context) (done bool, err error) {
		done, last, err = ok(ctx)
		return done, err
	})
	if err != nil {
		return fmt.Errorf("%s: %w (last: %s)", what, err, last)
	}
	return nil
}
