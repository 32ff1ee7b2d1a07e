package host

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
)

// failure makes passes until the host has failed once more. It returns the wait
// after that. A silent BMC is not yet a failure.
func (b *bench) failure(count int) time.Duration {
	b.t.Helper()
	for range 2000 {
		res, err := b.pass()
		if err != nil && !errors.Is(err, bmc.ErrUnreachable) {
			b.t.Fatalf("Reconcile: %v", err)
		}
		if b.host().Status.ErrorCount >= count {
			return res.RequeueAfter
		}
	}
	b.t.Fatalf("no failure %d after 2000 passes: %+v", count, b.host().Status)
	return 0
}

// errRefused is the error of a BMC that refuses a request.
var errRefused = errors.New("bmctest: 400 Bad Request")

const (
	off5m = " operation failed: power is On 5m0s after the BMC accepted the change"
	on5m  = " operation failed: power is Off 5m0s after the BMC accepted the change"
	write = "Image provisioning failed (url: " + imageURL + ", checksum: d41d8cd98f00b204e9800998ecf8427e): "
)

// For each way in which an operation can fail, and each state: the error and its
// type, the wait until the retry (B-13), and that the host reaches its goal once
// the cause is removed.
func TestFailuresOfEachTransition(t *testing.T) {
	password := func(b *bench) {
		b.bmc.SetCredentials(bmc.Credentials{Username: "admin", Password: "other"})
		b.password("wrong")
	}
	right := func(b *bench) { b.password("other") }
	agentSays := func(k job.Kind, text string) func(*bench) {
		return func(b *bench) { b.answers[k] = job.Report{State: job.Failed, Error: text} }
	}
	agentWorks := func(k job.Kind) func(*bench) {
		return func(b *bench) {
			b.answers[k] = job.Report{State: job.Done, Inventory: &job.Hardware{Hostname: hostName}}
		}
	}
	refuse := func(v bmctest.Verb) func(*bench) { return func(b *bench) { b.bmc.Fail(v, errRefused) } }
	plug := func(b *bench) { b.bmc.Plug() }
	stick := func(b *bench) { b.bmc.Stick(true) }
	unstick := func(b *bench) { b.bmc.Stick(false) }
	deafen := func(b *bench) { b.deaf = true }
	listen := func(b *bench) { b.deaf = false }
	// busyThen calls a function while the agent is at work.
	busyThen := func(then func(*bench)) func(*bench) {
		return func(b *bench) {
			answers := maps.Clone(b.answers)
			for kind := range answers {
				b.answers[kind] = job.Report{State: job.Running}
			}
			ran := len(b.ran)
			b.until("at work", func(*metal3.BareMetalHost) bool { return len(b.ran) > ran })
			b.answers = answers
			then(b)
		}
	}
	for _, tt := range []struct {
		ref, name string
		state     metal3.ProvisioningState
		// make is called when the host is in state, and makes it fail.
		make, repair func(*bench)
		fails        metal3.ErrorType
		message      string
		once         bool // the second attempt is in another state
	}{
		{"B-46 B-47", "wrong password", metal3.StateInspecting, password, right, metal3.RegistrationError, "bmctest: the BMC refused the credentials: correct username and password in the Secret lab/secret", false},
		{"B-46 B-47", "wrong password", metal3.StateProvisioning, password, right, metal3.RegistrationError, "bmctest: the BMC refused the credentials: correct username and password in the Secret lab/secret", false},
		{"B-46 B-47", "wrong password", metal3.StateDeprovisioning, password, right, metal3.RegistrationError, "bmctest: the BMC refused the credentials: correct username and password in the Secret lab/secret", false},
		{"B-46 B-47", "BMC silent", metal3.StateInspecting, func(b *bench) { b.bmc.Unplug() }, plug, metal3.RegistrationError, "bmctest: the BMC does not answer", false},
		{"B-46 B-47", "BMC silent", metal3.StateProvisioning, func(b *bench) { b.bmc.Unplug() }, plug, metal3.RegistrationError, "bmctest: the BMC does not answer", false},
		{"B-46 B-47", "BMC silent", metal3.StateDeprovisioning, func(b *bench) { b.bmc.Unplug() }, plug, metal3.RegistrationError, "bmctest: the BMC does not answer", false},
		{"B-49", "power stuck", metal3.StateInspecting, stick, unstick, metal3.InspectionError, "PowerOn" + on5m, false},
		{"B-59", "power stuck", metal3.StateProvisioning, stick, unstick, metal3.ProvisioningError, "PowerOn" + on5m, true},
		{"B-66", "power stuck", metal3.StateDeprovisioning, stick, unstick, metal3.ProvisioningError, "PowerOff" + off5m, false},
		{"B-124", "power refused", metal3.StateAvailable, func(b *bench) { b.bmc.Press(bmc.Off); refuse(bmctest.SetPower)(b) }, plug, metal3.PowerManagementError, "PowerOn operation failed: bmctest: 400 Bad Request", false},
		{"B-124", "power stuck", metal3.StateProvisioned, func(b *bench) { b.bmc.Press(bmc.Off); stick(b) }, unstick, metal3.PowerManagementError, "PowerOn" + on5m, false},
		{"B-123 B-124", "power refused", metal3.StateProvisioned, func(b *bench) {
			b.change(func(h *metal3.BareMetalHost) { h.Spec.Online = false })
			refuse(bmctest.SetPower)(b)
		}, func(b *bench) { b.change(func(h *metal3.BareMetalHost) { h.Spec.Online = true }); plug(b) }, metal3.PowerManagementError,
			"PowerOff operation failed: Continuing with hard poweroff after soft poweroff fails. More details: bmctest: 400 Bad Request", true},
		{"B-49", "agent silent", metal3.StateInspecting, deafen, listen, metal3.InspectionError, "the agent did not report within 30m0s of the boot", false},
		{"B-59", "agent silent", metal3.StateProvisioning, deafen, listen, metal3.ProvisioningError, "the agent did not report within 30m0s of the boot", true},
		{"B-66", "agent silent", metal3.StateDeprovisioning, deafen, listen, metal3.ProvisioningError, "the agent did not report within 30m0s of the boot", false},
		{"B-49", "agent falls silent", metal3.StateInspecting, busyThen(deafen), listen, metal3.InspectionError, "the agent has not been heard of for 15m0s", true},
		{"B-59", "agent falls silent", metal3.StateProvisioning, busyThen(deafen), listen, metal3.ProvisioningError, "the agent has not been heard of for 15m0s", true},
		{"B-66", "agent falls silent", metal3.StateDeprovisioning, busyThen(deafen), listen, metal3.ProvisioningError, "the agent has not been heard of for 15m0s", true},
		{"B-49", "inspection fails", metal3.StateInspecting, agentSays(job.Inventory, "inventory: no CPU"), agentWorks(job.Inventory), metal3.InspectionError, "inventory: no CPU", false},
		{"B-49", "inspection fails without a word", metal3.StateInspecting, agentSays(job.Inventory, ""), agentWorks(job.Inventory), metal3.InspectionError, "Inspection failed", false},
		{"B-59", "image missing", metal3.StateProvisioning, agentSays(job.Write, "disk: download http://192.0.2.1/image: the server answers 404 Not Found"), agentWorks(job.Write), metal3.ProvisioningError, write + "disk: download http://192.0.2.1/image: the server answers 404 Not Found", true},
		{"B-59", "checksum wrong", metal3.StateProvisioning, agentSays(job.Write, "disk: checksum mismatch"), agentWorks(job.Write), metal3.ProvisioningError, write + "disk: checksum mismatch", true},
		{"B-59", "disk too small", metal3.StateProvisioning, agentSays(job.Write, "disk: the image has 9 GiB, /dev/sda 4 GiB"), agentWorks(job.Write), metal3.ProvisioningError, write + "disk: the image has 9 GiB, /dev/sda 4 GiB", true},
		{"B-59 B-162", "no disk matches", metal3.StateProvisioning, agentSays(job.Write, "disk: no disk matches the root device hints"), agentWorks(job.Write), metal3.ProvisioningError, write + "disk: no disk matches the root device hints", true},
		{"B-59 B-61", "cleaning fails", metal3.StateProvisioning, agentSays(job.Clean, "disk: zero /dev/sda: I/O error"), agentWorks(job.Clean), metal3.ProvisioningError, write + "Cleaning failed: disk: zero /dev/sda: I/O error", true},
		{"B-66", "cleaning fails", metal3.StateDeprovisioning, agentSays(job.Clean, "disk: zero /dev/sda: I/O error"), agentWorks(job.Clean), metal3.ProvisioningError, "Cleaning failed: disk: zero /dev/sda: I/O error", false},
		{"B-66", "cleaning fails without a word", metal3.StateDeprovisioning, agentSays(job.Clean, ""), agentWorks(job.Clean), metal3.ProvisioningError, "Deprovisioning failed", false},
		{"B-49", "virtual media refused", metal3.StateInspecting, refuse(bmctest.InsertMedia), plug, metal3.InspectionError, "bmctest: 400 Bad Request", false},
		{"B-59", "virtual media refused", metal3.StateProvisioning, refuse(bmctest.InsertMedia), plug, metal3.ProvisioningError, "bmctest: 400 Bad Request", true},
		{"B-66", "virtual media refused", metal3.StateDeprovisioning, refuse(bmctest.InsertMedia), plug, metal3.ProvisioningError, "bmctest: 400 Bad Request", false},
		{"B-49", "boot override refused", metal3.StateInspecting, refuse(bmctest.SetBoot), plug, metal3.InspectionError, "bmctest: 400 Bad Request", false},
		{"B-53", "medium stays", metal3.StatePreparing, refuse(bmctest.EjectMedia), plug, metal3.PreparationError, "bmctest: 400 Bad Request", false},
	} {
		t.Run(fmt.Sprintf("%s while %s", tt.name, tt.state), func(t *testing.T) {
			b := newBench(t, 1, func(h *metal3.BareMetalHost) {
				if tt.state != metal3.StateAvailable {
					withImage(h)
				}
			})
			goal := metal3.StateProvisioned
			switch tt.state {
			case metal3.StateDeprovisioning:
				b.until("provisioned", in(metal3.StateProvisioned))
				b.change(func(h *metal3.BareMetalHost) { h.Spec.Image = nil })
				goal = metal3.StateAvailable
			case metal3.StateAvailable:
				goal = metal3.StateAvailable
			}
			b.until(string(tt.state), in(tt.state))
			tt.make(b)
			wait := b.failure(1)
			s := b.host().Status
			if s.ErrorType != tt.fails || s.ErrorMessage != tt.message || s.ErrorCount != 1 || s.OperationalStatus != metal3.OperationalStatusError || s.Provisioning.State != tt.state {
				t.Errorf("%s: in %s %s, %s, count %d: %q\nwant %s: %q", tt.ref, s.Provisioning.State, s.OperationalStatus, s.ErrorType, s.ErrorCount, s.ErrorMessage, tt.fails, tt.message)
			}
			if wait <= time.Minute || wait > 2*time.Minute {
				t.Errorf("B-13: the next attempt is after %v, want in ]1m, 2m]", wait)
			}
			if !slices.Contains(b.reasons(), eventReasons[tt.fails]) {
				t.Errorf("B-13: events %v, want %s", b.reasons(), eventReasons[tt.fails])
			}
			if !tt.once {
				if wait := b.failure(2); wait <= 2*time.Minute || wait > 4*time.Minute {
					t.Errorf("B-13: the third attempt is after %v, want in ]2m, 4m]", wait)
				}
				if s := b.host().Status; s.Provisioning.State != tt.state || s.ErrorMessage == "" {
					t.Errorf("after the second failure: %+v", s)
				}
			}
			tt.repair(b)
			b.until("where it was to go", func(h *metal3.BareMetalHost) bool {
				return in(goal)(h) && h.Status.ErrorType == "" && h.Status.PoweredOn == h.Spec.Online && b.power() == bmc.On
			})
			if s := b.host().Status; s.ErrorCount != 0 || s.ErrorMessage != "" || s.OperationalStatus != metal3.OperationalStatusOK {
				t.Errorf("B-82: afterwards %+v", s)
			}
			image := ""
			if goal == metal3.StateProvisioned {
				image = imageURL
			}
			if got := b.host().Status.Provisioning.Image.URL; got != image {
				t.Errorf("image %q in the end, want %q", got, image)
			}
		})
	}
}

// B-14: a BMC that resets during an operation and loses its medium costs at most a
// boot: nothing is inspected, cleaned or written twice.
func TestBMCThatResetsDuringAnOperation(t *testing.T) {
	want := []job.Kind{job.Inventory, job.Clean, job.Write}
	for passes := range 40 {
		b := newBench(t, uint64(passes), withImage)
		for range passes {
			if _, err := b.pass(); err != nil {
				t.Fatal(err)
			}
		}
		b.bmc.Unplug()
		b.bmc.Lose()
		for range 6 {
			if _, err := b.pass(); err != nil && !errors.Is(err, bmc.ErrUnreachable) {
				t.Fatal(err)
			}
		}
		b.bmc.Plug()
		b.until("provisioned", in(metal3.StateProvisioned))
		if !slices.Equal(b.ran, want) {
			t.Errorf("a reset after %d passes: the agent ran %v, want %v", passes, b.ran, want)
		}
		if s := b.host().Status; s.ErrorType != "" || s.Provisioning.Image.URL != imageURL {
			t.Errorf("a reset after %d passes: %+v", passes, s)
		}
	}
}

// B-70: a host whose server cannot be powered off is deleted after three failures;
// a power change that does not happen is noticed first.
func TestHostThatCannotBePoweredOffIsDeleted(t *testing.T) {
	b := newBench(t, 1, nil)
	b.until("on", func(h *metal3.BareMetalHost) bool { return in(metal3.StateAvailable)(h) && h.Status.PoweredOn })
	b.bmc.Stick(true)
	if err := b.kube.Delete(t.Context(), b.host()); err != nil {
		t.Fatal(err)
	}
	b.until("told", hasError(metal3.PowerManagementError))
	if s := b.host().Status; s.ErrorMessage != "PowerOff"+off5m || s.Provisioning.State != metal3.StatePoweringOffBeforeDelete {
		t.Errorf("status %+v", s)
	}
	b.until("gone", func(h *metal3.BareMetalHost) bool { return h == nil })
}

// B-122 B-124: a slow power change is reported once.
func TestSlowPowerIsReportedOnce(t *testing.T) {
	b := newBench(t, 1, nil)
	b.until("on", func(h *metal3.BareMetalHost) bool { return in(metal3.StateAvailable)(h) && h.Status.PoweredOn })
	b.bmc.Press(bmc.Off)
	b.bmc.Stick(true)
	before := 0
	count := func() (n int) {
		for _, r := range b.reasons() {
			if r == "PowerOn" {
				n++
			}
		}
		return n
	}
	before = count()
	b.passes(20) // a minute
	if got := count() - before; got != 1 {
		t.Errorf("%d events, want one", got)
	}
	b.bmc.Stick(false)
	b.passes(3)
	if b.power() != bmc.On || b.host().Status.ErrorType != "" {
		t.Errorf("power %s, error %q", b.power(), b.host().Status.ErrorType)
	}
}

// B-126: a deprovisioned host with online: true is powered on.
func TestDeprovisionedHostIsPoweredOnAgain(t *testing.T) {
	b := benchProvisioned(t, nil)
	b.change(func(h *metal3.BareMetalHost) { h.Spec.Image = nil })
	b.until("deprovisioned", in(metal3.StateAvailable))
	if b.power() != bmc.Off || b.host().Status.PoweredOn {
		t.Errorf("B-65: power %s, poweredOn %v, want off", b.power(), b.host().Status.PoweredOn)
	}
	b.passes(20)
	if b.power() != bmc.On || !b.host().Status.PoweredOn || !in(metal3.StateAvailable)(b.host()) {
		t.Errorf("power %s, %+v", b.power(), b.host().Status)
	}
}

// B-121: a change of power by somebody else is noticed, recorded and reverted.
func TestPowerDriftIsCorrected(t *testing.T) {
	for _, online := range []bool{true, false} {
		b := benchProvisioned(t, nil)
		b.change(func(h *metal3.BareMetalHost) { h.Spec.Online = online })
		b.passes(20)
		wanted, other := bmc.On, bmc.Off
		if !online {
			wanted, other = bmc.Off, bmc.On
		}
		b.bmc.Press(other)
		if _, err := b.pass(); err != nil {
			t.Fatal(err)
		}
		if got := b.host().Status.PoweredOn; got == online {
			t.Errorf("online %v: poweredOn %v was not noticed", online, got)
		}
		b.passes(20)
		if b.power() != wanted || b.host().Status.PoweredOn != online {
			t.Errorf("online %v: power %s, poweredOn %v", online, b.power(), b.host().Status.PoweredOn)
		}
	}
}
