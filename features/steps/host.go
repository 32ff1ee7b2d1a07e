package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/lab"
)

const wrongPassword = "not-the-password"

func (s *scenario) registerHosts(sc *stepRegistry) {
	sc.Step(`^the operator registers the server$`, "applies the Secret and the BareMetalHost of the server", s.registerServer)
	sc.Step(`^the operator registers the server with a wrong password$`, "applies the BareMetalHost, and a Secret that the BMC refuses", s.registerWithWrongPassword)
	sc.Step(`^the operator registers the server without its Secret$`, "applies the BareMetalHost alone", s.registerWithoutSecret)
	sc.Step(`^the operator registers the server without its BMC$`, "applies a BareMetalHost without spec.bmc", s.registerWithoutBMC)
	sc.Step(`^the operator adds the BMC$`, "applies the Secret, and edits the host's BMC details", s.addBMC)
	sc.Step(`^the operator edits the host's BMC details$`, "edits the host's BMC details to those of the server", s.setBMC)
	sc.Step(`^the host's operational status is "([^"]*)"$`, "waits for status.operationalStatus", s.hasStatus)
	sc.Step(`^the operator registers the server at the address "([^"]*)"$`, "applies its Secret and its BareMetalHost with a BMC address in which HOST:PORT stands for the BMC's Redfish, IPMI for its IPMI and SYSTEM for the system's path", s.registerWithAddress)
	sc.Step(`^the operator creates the Secret$`, "applies the Secret", s.createSecret)
	sc.Step(`^the operator corrects the password$`, "edits the Secret to the right password", s.correctPassword)
	sc.Step(`^the operator has registered the server$`, "registers the server and waits until it is available, on and has nothing to boot", s.hasRegistered)
	sc.Step(`^the operator has provisioned the server$`, "registers the server, sets the image and waits until the host is provisioned", s.hasProvisioned)
	sc.Step(`^the operator sets online to (true|false)$`, "edits spec.online", s.setOnline)
	sc.Step(`^the operator pauses the host$`, "sets the annotation baremetalhost.metal3.io/paused", func(ctx context.Context) error { return s.annotate(ctx, metal3.PausedAnnotation, "by the operator") })
	sc.Step(`^the operator resumes the host$`, "removes the annotation again", func(ctx context.Context) error { return s.unannotate(ctx, metal3.PausedAnnotation) })
	sc.Step(`^the operator detaches the host$`, "sets the annotation baremetalhost.metal3.io/detached", func(ctx context.Context) error { return s.annotate(ctx, metal3.DetachedAnnotation, "") })
	sc.Step(`^the operator attaches the host$`, "removes the annotation again", func(ctx context.Context) error { return s.unannotate(ctx, metal3.DetachedAnnotation) })
	sc.Step(`^the operator moves the host to another cluster$`, "detaches and deletes the host, and creates it again with its status in an annotation", s.moveToAnotherCluster)
	sc.Step(`^the operator corrects the password, with whitespace around it$`, "edits the Secret to the right password, with blanks and a newline", func(ctx context.Context) error {
		return s.setPassword(ctx, " "+s.server.Password+" \n")
	})
	sc.Step(`^the Secret is deleted$`, "waits until the BMC's Secret does not exist, which existed before", func(ctx context.Context) error { return s.isDeleted(ctx, "Secret") })
	sc.NegativeStep(`^the Secret is still there$`, "asserts, once each controller has reconciled every object, that the BMC's Secret exists", func(ctx context.Context) error {
		if err := s.letControllersAct(ctx); err != nil {
			return err
		}
		secret, _ := lab.Objects(s.server)
		return s.kube.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	})
	sc.Step(`^the HardwareData is deleted$`, "waits until the host's HardwareData does not exist, which existed before", func(ctx context.Context) error { return s.isDeleted(ctx, "HardwareData") })
	sc.Step(`^the operator gives the host a BMC address without a path$`, "edits spec.bmc.address so that it names no system", s.shortenAddress)
	sc.Step(`^the operator deletes the Secret$`, "deletes the BMC's Secret without waiting", s.deleteSecret)
	sc.Step(`^the operator changes the password of the Secret to a wrong one$`, "edits the password in the BMC's Secret", func(ctx context.Context) error { return s.setPassword(ctx, wrongPassword) })
	sc.Step(`^the BMC's password becomes "([^"]*)"$`, "changes the password of the BMC's account, and not the Secret", s.changeBMCPassword)
	sc.StepWithOptionalText(`^the operator changes the password of the Secret to "([^"]*)"$`, "edits the password in the BMC's Secret", s.setPassword)
	sc.Step(`^the operator deletes the host$`, "deletes the BareMetalHost without waiting", s.deleteHost)
	sc.Step(`^the host becomes "([^"]*)"$`, "waits until the host is in this provisioning state, or was since the state last waited for", s.awaitState)
	sc.NegativeStep(`^the host stays ""$`, "asserts likewise that the host has no provisioning state", func(ctx context.Context) error { return s.staysInState(ctx, "") })
	sc.NegativeStep(`^the host stays "([^"]+)"$`, "asserts, once each controller has reconciled every object, that the provisioning state is this one and was no other since time passed or the state last waited for", s.staysInState)
	sc.Step(`^the host reports "([^"]*)"$`, "waits until the host has this errorType, or has had it since the last Given or When", s.awaitErrorType)
	sc.NegativeStep(`^the host reports no error$`, "waits until errorType, errorMessage and errorCount are clear and operationalStatus is OK, and asserts that they stay so while each controller reconciles every object", s.awaitNoError)
	sc.Step(`^the host has reported the error message "([^"]*)"$`, "waits until errorMessage contains this text, or has contained it since the last Given or When", s.errorMessageContained)
	sc.NegativeStep(`^it was never "([^"]*)"$`, "asserts, once each controller has reconciled every object, that the host has not had this provisioning state", s.neverWas)
	sc.Step(`^its error count is (\d+)$`, "waits for status.errorCount", func(ctx context.Context, n int) error {
		return s.awaitValue(ctx, "errorCount", fmt.Sprint(n), func(h *metal3.BareMetalHost) string { return fmt.Sprint(h.Status.ErrorCount) })
	})
	sc.Step(`^the host is deleted$`, "waits until the BareMetalHost does not exist, which existed before", s.isGone)
	sc.Step(`^it passed through "([^"]*)"$`, "waits until the host has had these provisioning states in this order", s.passedThrough)
	sc.Step(`^the inspection found the server's hardware$`, "compares the HardwareData with the emulated server", s.inspectionMatches)
	sc.Step(`^the inspection found the LLDP data of the server's switch ports$`, "compares LLDP data and VLANs of the HardwareData with the rack's cabling", s.inspectionFoundSwitches)
	sc.Step(`^the inspection found that the server booted from (no NIC|"[^"]*")$`, "asserts which NIC of the HardwareData has pxe: true", s.inspectionFoundPXE)
	sc.Step(`^the host shows the hardware that its BMC shows$`, "waits until status.hardware and the HardwareData have the NICs, disks, processors and memory of the emulated server", s.showsBMCHardware)
	sc.Step(`^the host shows what IPMI tells of its hardware$`, "waits until status.hardware and the HardwareData have manufacturer, product, serial number and BIOS version of the emulated server", s.showsIPMIHardware)
	sc.NegativeStep(`^the error message contains no password$`, "asserts, once each controller has reconciled every object, that errorMessage has been set, and has never contained one of the passwords", func(ctx context.Context) error {
		if err := s.letControllersAct(ctx); err != nil {
			return err
		}
		return s.messageHoldsNoPassword()
	})
	sc.Step(`^the events include "([^"]*)"$`, "waits for events with these reasons since the last Given or When", s.hasEvents)
	sc.Step(`^the event "([^"]*)" is related to "([^"]*)"$`, "waits for an event with this reason since the last Given or When whose related object has this name", s.eventRelatesTo)
	sc.Step(`^the host is no longer written$`, "waits until the BareMetalHost is not written for a second of real time", s.settles)
	sc.NegativeStep(`^the host has not been written again$`, "asserts, once each controller has reconciled every object, that the BareMetalHost has the resourceVersion of then", func(ctx context.Context) error {
		if err := s.letControllersAct(ctx); err != nil {
			return err
		}
		h, err := s.read(ctx)
		if err == nil && h.ResourceVersion != s.settledVersion {
			err = fmt.Errorf("it was: %s", s.recorder.String())
		}
		return err
	})
	sc.Step(`^an event "([^"]*)" names the checksum$`, "waits for an event whose message names the wrong checksum", s.eventNamesChecksum)
}

func (s *scenario) create(ctx context.Context, objects ...client.Object) error {
	for _, o := range objects {
		if err := s.kube.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

func (s *scenario) registerServer(ctx context.Context) error {
	secret, host := lab.Objects(s.server)
	return s.create(ctx, secret, host)
}

func (s *scenario) registerWithWrongPassword(ctx context.Context) error {
	secret, host := lab.Objects(s.server)
	secret.StringData["password"] = wrongPassword
	return s.create(ctx, secret, host)
}

func (s *scenario) registerWithoutSecret(ctx context.Context) error {
	_, host := lab.Objects(s.server)
	return s.create(ctx, host)
}

// registerWithAddress registers the server with another form of BMC address.
func (s *scenario) registerWithAddress(ctx context.Context, address string) error {
	secret, host := lab.Objects(s.server)
	if err := s.setAddress(host, address); err != nil {
		return err
	}
	return s.create(ctx, secret, host)
}

// setAddress sets the BMC address of the server's host.
func (s *scenario) setAddress(host *metal3.BareMetalHost, address string) error {
	u, err := url.Parse(s.server.BMCAddress)
	if err != nil {
		return err
	}
	host.Spec.BMC.Address = strings.NewReplacer("HOST:PORT", u.Host, "IPMI", s.server.IPMI, "/SYSTEM", u.Path).Replace(address)
	return nil
}

func (s *scenario) registerWithoutBMC(ctx context.Context) error {
	_, host := lab.Objects(s.server)
	host.Spec.BMC = metal3.BMCDetails{}
	return s.create(ctx, host)
}

func (s *scenario) addBMC(ctx context.Context) error {
	if err := s.createSecret(ctx); err != nil {
		return err
	}
	return s.setBMC(ctx)
}

func (s *scenario) setBMC(ctx context.Context) error {
	_, host := lab.Objects(s.server)
	return s.change(ctx, func(h *metal3.BareMetalHost) { h.Spec.BMC = host.Spec.BMC })
}

// awaitValue waits until a value of the host is the wanted one.
func (s *scenario) awaitValue(ctx context.Context, what, want string, value func(*metal3.BareMetalHost) string) error {
	return eventually(ctx, what+" is "+want, func(context.Context) (bool, string, error) {
		h := s.recorder.host()
		if h == nil {
			return false, "no host", nil
		}
		return value(h) == want, value(h), nil
	})
}

func (s *scenario) hasStatus(ctx context.Context, status string) error {
	return s.awaitValue(ctx, "operationalStatus", status, func(h *metal3.BareMetalHost) string { return string(h.Status.OperationalStatus) })
}

func (s *scenario) createSecret(ctx context.Context) error {
	secret, _ := lab.Objects(s.server)
	return s.create(ctx, secret)
}

func (s *scenario) correctPassword(ctx context.Context) error {
	right, _ := lab.Objects(s.server)
	return s.setPassword(ctx, right.StringData["password"])
}

func (s *scenario) setPassword(ctx context.Context, password string) error {
	secret, _ := lab.Objects(s.server)
	if err := s.kube.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
		return err
	}
	before := secret.DeepCopy()
	secret.Data["password"] = []byte(password)
	return s.kube.Patch(ctx, secret, client.MergeFrom(before))
}

func (s *scenario) deleteSecret(ctx context.Context) error {
	secret, _ := lab.Objects(s.server)
	return s.kube.Delete(ctx, secret)
}

func (s *scenario) shortenAddress(ctx context.Context) error {
	return s.change(ctx, func(h *metal3.BareMetalHost) {
		h.Spec.BMC.Address = strings.TrimSuffix(h.Spec.BMC.Address, "/"+path.Base(h.Spec.BMC.Address))
		h.Spec.BMC.Address = strings.TrimSuffix(h.Spec.BMC.Address, "/redfish/v1/Systems")
	})
}

// moveToAnotherCluster deletes and creates the objects as a pivot does, while the
// server stays as it is.
func (s *scenario) moveToAnotherCluster(ctx context.Context) error {
	h, err := s.read(ctx)
	if err != nil {
		return err
	}
	status, err := json.Marshal(h.Status)
	if err != nil {
		return err
	}
	if err := s.annotate(ctx, metal3.DetachedAnnotation, ""); err != nil {
		return err
	}
	if err := s.kube.Delete(ctx, h); err != nil {
		return err
	}
	if err := s.isGone(ctx); err != nil {
		return err
	}
	secret, _ := lab.Objects(s.server)
	if err := client.IgnoreNotFound(s.kube.Delete(ctx, secret)); err != nil {
		return err
	}
	if err := s.awaitDeletion(ctx, secret); err != nil {
		return err
	}
	s.recorder.forget()
	secret, host := lab.Objects(s.server)
	host.Spec = h.Spec
	host.Annotations = map[string]string{metal3.StatusAnnotation: string(status)}
	return s.create(ctx, secret, host)
}

func (s *scenario) hasRegistered(ctx context.Context) error {
	if err := s.registerServer(ctx); err != nil {
		return err
	}
	if err := s.awaitState(ctx, string(metal3.StateAvailable)); err != nil {
		return err
	}
	return s.hasNothingToBoot(ctx) // online, and with nothing to boot (B-126)
}

func (s *scenario) hasProvisioned(ctx context.Context) error {
	if err := s.hasRegistered(ctx); err != nil {
		return err
	}
	if err := s.requestLabImage(ctx); err != nil {
		return err
	}
	return s.awaitState(ctx, string(metal3.StateProvisioned))
}

// read returns the stored host, which the watch may not have brought yet.
func (s *scenario) read(ctx context.Context) (*metal3.BareMetalHost, error) {
	return s.readNamed(ctx, s.server.Name)
}

func (s *scenario) readNamed(ctx context.Context, name string) (*metal3.BareMetalHost, error) {
	h := new(metal3.BareMetalHost)
	return h, s.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: name}, h)
}

// change edits the host's specification or metadata.
func (s *scenario) change(ctx context.Context, edit func(*metal3.BareMetalHost)) error {
	version := ""
	err := retry.RetryOnConflict(conflictBackoff, func() error {
		h, err := s.read(ctx)
		if err != nil {
			return err
		}
		edit(h)
		err = s.kube.Update(ctx, h)
		version = h.ResourceVersion
		return err
	})
	if err != nil {
		return err
	}
	return s.catchUp(ctx, version)
}

// catchUp waits until the watch has brought a version, so that later steps do not
// see the host of before.
func (s *scenario) catchUp(ctx context.Context, version string) error {
	return eventually(ctx, "the watch brings version "+version, func(context.Context) (bool, string, error) {
		return s.recorder.caughtUp(version), "", nil
	})
}

func (s *scenario) setOnline(ctx context.Context, to string) error {
	return s.change(ctx, func(h *metal3.BareMetalHost) { h.Spec.Online = to == "true" })
}

func (s *scenario) deleteHost(ctx context.Context) error {
	_, host := lab.Objects(s.server)
	return s.kube.Delete(ctx, host)
}

// stateNames are all provisioning states.
var stateNames = []metal3.ProvisioningState{
	metal3.StateNone, metal3.StateUnmanaged, metal3.StateRegistering, metal3.StateMatchProfile, metal3.StatePreparing, metal3.StateReady,
	metal3.StateAvailable, metal3.StateProvisioning, metal3.StateProvisioned, metal3.StateExternallyProvisioned, metal3.StateDeprovisioning,
	metal3.StateInspecting, metal3.StatePoweringOffBeforeDelete, metal3.StateDeleting,
}

// checkStates returns an error when a name is not that of a provisioning state: a step that
// says that the host never has it could not fail.
func checkStates(names ...string) error {
	for _, name := range names {
		if !slices.Contains(stateNames, metal3.ProvisioningState(name)) {
			return fmt.Errorf("%q is not one of the provisioning states %q", name, stateNames)
		}
	}
	return nil
}

// trap runs a function when the host is next seen in a state.
func (s *scenario) trap(state string, spring func() error) error {
	if err := checkStates(state); err != nil {
		return err
	}
	s.recorder.trap(state, spring)
	return nil
}

func (s *scenario) awaitState(ctx context.Context, state string) error {
	if err := checkStates(state); err != nil {
		return err
	}
	return eventually(ctx, "the host becomes "+state, func(context.Context) (bool, string, error) {
		return s.recorder.reached(state), s.recorder.String(), nil
	})
}

// staysInState reads the state throughout: neither the host as it is stored nor any
// version of it since it came to the state may have another one. A host that was in the
// state at the last mark may not have left it.
func (s *scenario) staysInState(ctx context.Context, state string) error {
	if err := errors.Join(checkStates(state), s.letControllersAct(ctx)); err != nil {
		return err
	}
	h, err := s.read(ctx)
	if err != nil {
		return err
	}
	if got := string(h.Status.Provisioning.State); got != state {
		return fmt.Errorf("the host is %q, want %q", got, state)
	}
	if err := s.catchUp(ctx, h.ResourceVersion); err != nil {
		return err
	}
	got := s.recorder.statesSinceMark()
	first := slices.Index(got, metal3.ProvisioningState(state))
	if first < 0 || slices.ContainsFunc(got[first:], func(s metal3.ProvisioningState) bool { return string(s) != state }) {
		return fmt.Errorf("the host was %q meanwhile, want %q throughout", got, state)
	}
	return nil
}

func (s *scenario) awaitErrorType(ctx context.Context, kind string) error {
	return eventually(ctx, "the host reports "+kind, func(context.Context) (bool, string, error) {
		return s.recorder.hasReported(func(r report) bool { return string(r.kind) == kind }), s.recorder.String(), nil
	})
}

func (s *scenario) awaitNoError(ctx context.Context) error {
	err := eventually(ctx, "the host reports no error", func(context.Context) (bool, string, error) {
		h := s.recorder.host()
		if h == nil {
			return false, "no host", nil
		}
		st := h.Status
		return st.ErrorType == "" && st.ErrorMessage == "" && st.ErrorCount == 0 && st.OperationalStatus == metal3.OperationalStatusOK,
			fmt.Sprintf("%s %q %q %d", st.OperationalStatus, st.ErrorType, st.ErrorMessage, st.ErrorCount), nil
	})
	if err != nil {
		return err
	}
	before := s.recorder.reportCount()
	if err := s.letControllersAct(ctx); err != nil {
		return err
	}
	if late := s.recorder.errorsSince(before); len(late) > 0 {
		return fmt.Errorf("the host reported no error, and then %+v", late)
	}
	return nil
}

func (s *scenario) isGone(ctx context.Context) error {
	err := eventually(ctx, "the host is gone", func(ctx context.Context) (bool, string, error) {
		var h metal3.BareMetalHost
		err := s.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: s.server.Name}, &h)
		return apierrors.IsNotFound(err), string(h.Status.Provisioning.State), client.IgnoreNotFound(err)
	})
	if err != nil {
		return err
	}
	return eventually(ctx, "the watch brings the deletion", func(context.Context) (bool, string, error) {
		return s.recorder.existed() && s.recorder.host() == nil, "there was no host", nil
	})
}

func (s *scenario) passedThrough(ctx context.Context, list string) error {
	states := strings.Split(list, ", ")
	if err := checkStates(states...); err != nil {
		return err
	}
	return eventually(ctx, "it passed through "+list, func(context.Context) (bool, string, error) {
		return s.recorder.passedThrough(states), s.recorder.String(), nil
	})
}

func (s *scenario) errorMessageContained(ctx context.Context, text string) error {
	return eventually(ctx, "the host's error says "+text, func(context.Context) (bool, string, error) {
		return s.recorder.hasReported(func(r report) bool { return strings.Contains(r.message, text) }), s.recorder.String(), nil
	})
}

func (s *scenario) neverWas(ctx context.Context, state string) error {
	if err := errors.Join(checkStates(state), s.letControllersAct(ctx)); err != nil {
		return err
	}
	if s.recorder.passedThrough([]string{state}) {
		return fmt.Errorf("it was: %s", s.recorder.String())
	}
	return nil
}

func (s *scenario) messageHoldsNoPassword() error {
	messages := s.recorder.messages()
	if len(messages) == 0 {
		return errors.New("there was no message")
	}
	for _, text := range messages {
		for _, secret := range []string{wrongPassword, s.server.Password} {
			if strings.Contains(text, secret) {
				return fmt.Errorf("the message holds a password: %s", text)
			}
		}
	}
	return nil
}

// inspectionMatches compares the HardwareData, which the agent found in-band, with
// the emulated server.
func (s *scenario) inspectionMatches(ctx context.Context) error {
	var hd metal3.HardwareData
	if err := s.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: s.server.Name}, &hd); err != nil {
		return err
	}
	v := s.machine()
	d := hd.Spec.HardwareDetails
	for what, pair := range map[string][2]any{
		"serial number": {d.SystemVendor.SerialNumber, v.Identity.Serial},
		"product":       {d.SystemVendor.ProductName, v.Profile.Model},
		"manufacturer":  {d.SystemVendor.Manufacturer, v.Profile.Manufacturer},
		"BIOS version":  {d.Firmware.BIOS.Version, v.Profile.BIOS.Version},
		"memory":        {d.RAMMebibytes, v.Profile.MemoryMiB},
		"CPUs":          {d.CPU.Count, v.Profile.Processors.Sockets * v.Profile.Processors.Threads},
		"CPU model":     {d.CPU.Model, v.Profile.Processors.Model},
		"NICs":          {len(d.NIC), len(v.Identity.NICs)},
		"disks":         {len(d.Storage), 2},
	} {
		if pair[0] != pair[1] {
			return fmt.Errorf("%s: the agent found %v, the BMC shows %v", what, pair[0], pair[1])
		}
	}
	for i, n := range v.Identity.NICs {
		if d.NIC[i].MAC != n.MAC || d.NIC[i].SpeedGbps != n.SpeedMbps/1000 {
			return fmt.Errorf("NIC %d: the agent found %+v, the BMC shows %s", i, d.NIC[i], n.MAC)
		}
	}
	for i, drive := range v.Identity.Storage[0].Drives {
		got := d.Storage[i]
		if got.SerialNumber != drive.Serial || int64(got.SizeBytes) != drive.Capacity || got.WWN != "0x"+drive.WWN || got.Type != metal3.SSD || got.Rotational {
			return fmt.Errorf("disk %d: the agent found %+v, the BMC shows %+v", i, got, drive)
		}
	}
	return nil
}

// events returns the events of the server's objects since the last cause began.
func (s *scenario) events(ctx context.Context) ([]corev1.Event, error) {
	var l corev1.EventList
	err := s.kube.List(ctx, &l, client.InNamespace(lab.Namespace))
	return slices.DeleteFunc(l.Items, func(e corev1.Event) bool {
		version, err := strconv.ParseUint(e.ResourceVersion, 10, 64)
		return e.InvolvedObject.Name != s.server.Name || err != nil || version <= s.cause.events
	}), err
}

func (s *scenario) hasEvents(ctx context.Context, list string) error {
	return eventually(ctx, "events "+list, func(ctx context.Context) (bool, string, error) {
		events, err := s.events(ctx)
		seen := map[string]bool{}
		for _, e := range events {
			seen[e.Reason] = true
		}
		for _, want := range strings.Split(list, ", ") {
			if !seen[want] {
				return false, fmt.Sprint(seen), err
			}
		}
		return true, "", err
	})
}

func (s *scenario) eventRelatesTo(ctx context.Context, reason, name string) error {
	return eventually(ctx, "an event "+reason, func(ctx context.Context) (bool, string, error) {
		events, err := s.events(ctx)
		last := ""
		for _, e := range events {
			if e.Reason == reason {
				last = fmt.Sprintf("related to %+v", e.Related)
				return e.Related != nil && e.Related.Name == name, last, err
			}
		}
		return false, last, err
	})
}

func (s *scenario) settles(ctx context.Context) error {
	var since time.Time
	return eventually(ctx, "the host settles", func(ctx context.Context) (bool, string, error) {
		h, err := s.read(ctx)
		if h.ResourceVersion != s.settledVersion {
			s.settledVersion, since = h.ResourceVersion, time.Now()
		}
		return time.Since(since) > time.Second, h.ResourceVersion, err
	})
}

func (s *scenario) eventNamesChecksum(ctx context.Context, reason string) error {
	return eventually(ctx, "an event "+reason, func(ctx context.Context) (bool, string, error) {
		events, err := s.events(ctx)
		last := ""
		for _, e := range events {
			if e.Reason == reason {
				last = e.Message
				if strings.Contains(e.Message, "checksum: "+wrongChecksum) {
					return true, last, nil
				}
			}
		}
		return false, last, err
	})
}
