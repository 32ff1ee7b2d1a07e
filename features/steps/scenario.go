// Package steps binds the steps of the feature files to a live lab. Its files are
// named by the subject of their steps: hosts (the objects of the Kubernetes API),
// servers (the hardware in the rack), images, controllers. The package decides how
// scenarios share labs: each scenario gets servers that no other has used, and a
// lab's time runs as fast as its work allows. It knows no formatter and no test.
//
// Other suites register these steps beside their own:
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
	"slices"
	"strings"
	"time"

	"github.com/cucumber/godog"
	messages "github.com/cucumber/messages/go/v21"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/lab"
)

// conflictBackoff is how often a step repeats an edit that met a conflict: controllers that
// work at full speed on a busy machine can be faster several times.
var conflictBackoff = wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1.5, Steps: 15}

// scenario is the state that the steps of one scenario share.
type scenario struct {
	labs           *Labs // that the scenario takes its lab from; nil: it starts one for itself
	testLab        *testLab
	dir            string // directory of the lab
	lab            *lab.Lab
	kube           client.WithWatch
	servers        []control.Host // the hosts of this scenario
	server         control.Host   // the first of them, which the scenario is about
	stop           context.CancelFunc
	recorder       *recorder
	uri, name      string       // URI and name of the scenario
	recording      *recording   // nil: it is not recorded
	faults         []string     // IDs of the rules that the scenario has added
	requestsFrom   journal.Mark // from which requests to its BMC are counted
	resetsFrom     journal.Mark // from which its resets are counted
	startsBefore   starts       // when the count began
	preparation    *preparation
	settledVersion string // resourceVersion of the host when it was no longer written
	bootsBefore    uint64 // boot count of the server when the image, settings or updates were last set

	commandBoots uint64 // boot count of the server when the last command began

	stepType       messages.PickleStepType // type of the last step
	cause          cause
	checksDeletion bool // the scenario has a step that an object is deleted

	stranger     *lab.Stranger // nil: there is none yet
	mediumURL    string        // URL of the medium that the stranger has read
	releaseClock func()        // lets the lab's time go on; nil: it goes on

	machines        []string                        // names of the Machines that are servers, in the servers' order
	plans           watch.Interface                 // watch of ClusterUpdatePlans; nil: none was commenced
	planSteps       map[string][]kaasv1.PlanStatus  // by target and id: the statuses that the watch has brought
	cordons         *cordons                        // nil: no node is watched
	executions      *executions                     // nil: no cluster was deployed
	proxy           *outboundProxy                  // nil: there is none
	balancer        string                          // address of the Cluster's load balancer
	releaseBalancer func()                          // nil: there is none
	deployedBoots   map[string]uint64               // boot counts of the servers when the cluster was deployed, by machine
	looks           int                             // that agents were made to take
	items           map[string][]lcmv1.LCMStateItem // stateItems of LCMMachines, by name, when a step last waited for them
	modules         *moduleServer                   // nil: none were listed
	registrants     map[string]*registrant          // agents that the steps play, by their hosts
	receiver        *receiver                       // nil: nobody has subscribed
	kubectlOutput   string
	dryRun          bool           // there was one
	admissionError  error          // error of the last dry run; nil: it was accepted
	firstImage      string         // first OS image of the pool that a step has waited for
	updatedTo       nodeTarget     // target of the node when its pool was last Updated
	updatedBefore   nodeTarget     // target of the node at the Updated before that
	updatedBoots    uint64         // boot count of the server when its pool was last Updated
	fileWatch       *fileWatch     // nil: no files are watched
	targetWatch     *targetWatch   // nil: no Node of a pool is watched
	schemas         map[int]string // names of FirmwareSchemas, by the number of the server

	resetHost  *elementalv1.ElementalHost // whose Machine was deleted last
	resetBoots uint64                     // boot count of that host's server at the deletion
	phaseActs  *phaseActs                 // nil: none were announced

	checked *checkedBMC // that the scenario has taken by its address; nil: none
}

// register binds all steps.
func (s *scenario) register(b *stepRegistry) {
	for _, noun := range []struct {
		about string
		bind  func(*stepRegistry)
	}{
		{"lab", s.registerLabs}, {"host", s.registerHosts}, {"object", s.registerObjects}, {"server", s.registerServers},
		{"BMC", s.registerFaults}, {"image", s.registerImages}, {"configuration", s.registerConfig}, {"operating system", s.registerFiles}, {"LCM agent", s.registerLCMAgent}, {"node", s.registerNodes}, {"controller", s.registerControllers},
		{"deletion of machines", s.registerDeletions}, {"network boot", s.registerNetboot}, {"RAID", s.registerRAID},
		{"data image", s.registerDataImages}, {"subscription", s.registerSubscriptions},
		{"pre-provisioning image", s.registerPreprovisioning}, {"admission", s.registerAdmission}, {"kubectl", s.registerKubectl},
		{"host OS configuration", s.registerHostOS}, {"machine", s.registerMachines}, {"cluster", s.registerClusters}, {"release", s.registerUpgrades}, {"agent of a release", s.registerAgentReleases}, {"update group", s.registerUpdateGroups}, {"graceful reboot", s.registerReboots}, {"label of a node", s.registerNodeLabels}, {"server inventory", s.registerServerInventory}, {"network", s.registerNetworks}, {"provider", s.registerProvider}, {"API of a cluster", s.registerWorkloads}, {"proxy", s.registerProxies}, {"gate", s.registerGates}, {"host profile", s.registerHostProfiles}, {"cloud-init", s.registerCloudInit}, {"chart", s.registerCharts}, {"Helm controller", s.registerHelmControllers}, {"Elemental machine", s.registerElementalMachines}, {"Elemental server", s.registerElementalServers}, {"failure of an Elemental server", s.registerElementalFailures}, {"network boot of an Elemental server", s.registerElementalNetboot},
		{"OS image", s.registerImageBuilds},
		{"node of a pool", s.registerMachineConfig}, {"update of a node", s.registerMachineConfigFaults}, {"watch on files", s.registerFileWatch}, {"two families", s.registerFamilies},
		{"stranger", s.registerStrangers}, {"conformance", s.registerConformance},
		{"firmware", s.registerFirmware}, {"firmware object", s.registerFirmwareObjects}, {"preparation", s.registerPreparation}, {"quirk", s.registerQuirks},
	} {
		b.about = noun.about
		noun.bind(b)
	}
}

// Register binds all steps to a scenario, which starts a lab when a step needs
// one. Use Labs to run many scenarios.
func Register(sc *godog.ScenarioContext) *Scenario {
	return bind(sc, &scenario{recorder: new(recorder)})
}

func bind(sc *godog.ScenarioContext, s *scenario) *Scenario {
	s.register(&stepRegistry{sc: sc})
	sc.Before(func(ctx context.Context, pickle *godog.Scenario) (context.Context, error) {
		ctx = context.WithValue(ctx, scenarioKey{}, s)
		s.uri, s.name = pickle.Uri, pickle.Name
		s.checksDeletion = slices.ContainsFunc(pickle.Steps, func(st *godog.Step) bool { return strings.HasSuffix(st.Text, "is deleted") })
		return ctx, nil
	})
	sc.StepContext().Before(func(ctx context.Context, st *godog.Step) (context.Context, error) {
		return ctx, errors.Join(Definitions().Check(st), s.beginStep(ctx, st))
	})
	// godog joins the error of the hook with that of the step.
	sc.After(func(ctx context.Context, _ *godog.Scenario, failed error) (context.Context, error) {
		var record error
		if failed != nil {
			record = s.labFailure()
			if text := s.recorder.String(); !strings.Contains(failed.Error(), text) { // a step that waited for the host says it
				record = errors.Join(errors.New(text), record)
			}
		}
		err := errors.Join(record, s.end(context.WithoutCancel(ctx), failed == nil))
		if err == nil {
			err = s.recorder.trapProblems()
		}
		return ctx, err
	})
	return &Scenario{s}
}

// labFailure says why the scenario's lab has ended before the scenario; nil where it has not.
func (s *scenario) labFailure() error {
	if s.lab == nil {
		return nil
	}
	if err := s.lab.Failure(); err != nil {
		return fmt.Errorf("the lab has ended: %w", err)
	}
	return nil
}

func (s *scenario) registerLabs(sc *stepRegistry) {
	sc.Step(`^a lab with (\d+) servers?$`, "gives the scenario unused servers with BMCs, a Kubernetes API and the controllers",
		func(ctx context.Context, servers int) error { return s.start(ctx, servers, "") })
	sc.Step(`^a lab with (\d+) servers? of the model "([^"]*)"$`, "gives the scenario unused servers of a hardware profile: see labctl up --help",
		s.start)
	sc.Step(`^a server of the model "([^"]*)" in a lab of all models$`, "gives the scenario an unused server of a lab that has some of every hardware profile",
		func(ctx context.Context, model string) error {
			return s.startKind(ctx, 1, labKind{profile: model, allModels: true})
		})
	sc.Step(`^a lab with (\d+) servers? whose controllers build pre-provisioning images$`, "gives the scenario servers whose controllers have a PreprovisioningImage for each host",
		func(ctx context.Context, servers int) error {
			return s.startKind(ctx, servers, labKind{preprovisioning: true})
		})
}

func (s *scenario) start(ctx context.Context, servers int, profile string) error {
	return s.startKind(ctx, servers, labKind{profile: profile})
}

// startMixed starts a lab with servers of two hardware profiles, in this order.
func (s *scenario) startMixed(ctx context.Context, first int, model string, more int, other string) error {
	r := rackfile.Default(first)
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
	s.dir, s.lab, s.kube = s.testLab.dir, s.testLab.lab, s.testLab.kube
	s.testLab.downloads.resetCount()
	s.testLab.replaced = nil // they were another server's
	s.servers = s.testLab.assign(servers)
	s.server = s.servers[0]
	if err := s.startRecording(ctx); err != nil {
		return err
	}
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	return s.recorder.start(ctx, s.kube, s.server.Name)
}

// end releases the lab, or closes it if it is the scenario's alone.
func (s *scenario) end(ctx context.Context, well bool) error {
	if s.testLab == nil {
		return nil
	}
	defer func() { s.testLab = nil }() // the hooks of the steps that are skipped come after the failure
	recorded := s.endRecording(well)
	s.releaseTime()
	if s.releaseBalancer != nil {
		defer s.releaseBalancer() // when the lab has closed it
	}
	if s.receiver != nil {
		s.receiver.Close()
	}
	if s.modules != nil {
		s.modules.close()
	}
	if s.proxy != nil {
		s.proxy.close()
	}
	if s.plans != nil {
		s.plans.Stop()
	}
	if s.targetWatch != nil {
		s.targetWatch.stop()
	}
	if s.fileWatch != nil && s.fileWatch.stop != nil {
		s.fileWatch.stop()
	}
	if s.phaseActs != nil {
		s.phaseActs.stop()
	}
	if s.executions != nil {
		s.executions.stop()
	}
	if s.cordons != nil {
		s.cordons.stop()
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
	return errors.Join(recorded, s.labs.release(ctx, s.testLab, s.servers, well))
}

// Scenario is a scenario as the steps of other suites see it. Its methods may be
// called after the step that starts the lab.
type Scenario struct{ s *scenario }

// Lab returns the running lab.
func (s *Scenario) Lab() *lab.Lab { return s.s.lab }

// Kubernetes returns a client of the lab's Kubernetes API.
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

// Eventually repeats ok until it returns true or an error, or the limit of the lab's time has passed and nothing changes any more. The
// error has the last text that ok has returned, and says how long it was waited.
func Eventually(ctx context.Context, what string, ok func(context.Context) (done bool, state string, err error)) error {
	return eventually(ctx, what, ok)
}

// patienceKey is the key of WithPatience.
type patienceKey struct{}

// WithPatience returns a context in which steps time out after d of real time in which the lab
// rests, and after twice that in any case. The default is patience.Limit.
func WithPatience(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, patienceKey{}, d)
}
