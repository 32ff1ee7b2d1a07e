package steps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/lab"
)

func (s *scenario) registerFirmware(sc *stepRegistry) {
	sc.Step(`^the operator sets the firmware settings "([^"]*)"$`, "edits spec.settings of the HostFirmwareSettings: name=value, …", s.setSettings)
	sc.Step(`^the operator creates the firmware settings "([^"]*)" before the host$`, "creates the HostFirmwareSettings before the BareMetalHost exists", s.createSettings)
	sc.Step(`^the firmware settings are applied$`, "waits until the settings are valid, ChangeDetected is False and the host is available", s.settingsApplied)
	sc.Step(`^the firmware settings are invalid, because "([^"]*)"$`, "waits until the condition Valid is False, and for an event with this message", s.settingsInvalid)
	sc.Step(`^the firmware settings are valid$`, "waits until the condition Valid is True for the current generation", s.settingsValid)
	sc.Step(`^the server's BIOS has "([^"]*)"$`, "asserts BIOS settings of the emulated server: name=value, …", s.biosHas)
	sc.Step(`^the firmware settings show all settings of the server$`, "waits until status.settings equals the server's BIOS settings, without passwords", s.settingsAreTheServers)
	sc.Step(`^their FirmwareSchema has the server's vendor and model$`, "asserts vendor and model of the FirmwareSchema that the settings refer to", s.schemaIsOfModel)
	sc.Step(`^the firmware components are "([^"]*)"$`, "waits for status.components", s.componentsAre)
	sc.NegativeStep(`^the server has booted (\d+) times? for the change$`, "asserts, once each controller has reconciled every object, how many boots the server has begun since the last change of settings or updates", s.startedFor)
	sc.Step(`^the server's attribute registry lacks "([^"]*)"$`, "hides an attribute from the BMC's attribute registry", s.registryLags)
	sc.Step(`^the attribute registry is complete again$`, "shows the hidden attribute in the BMC's attribute registry again", s.registryCatchesUp)
	sc.Step(`^the operator updates the firmware "([^"]*)"$`, "serves images, and edits spec.updates of the HostFirmwareComponents: component=version, …", s.updateFirmware)
	sc.Step(`^the operator updates the BIOS with an image that does not exist$`, "edits spec.updates of the HostFirmwareComponents to a URL that answers 404", s.updateFromNowhere)
	sc.Step(`^the operator updates the component "([^"]*)"$`, "edits spec.updates of the HostFirmwareComponents for this component", s.updateComponent)
	sc.Step(`^the firmware is updated$`, "waits until all updates are installed and the host is available", s.firmwareUpdated)
	sc.Step(`^the firmware components are invalid, because "([^"]*)"$`, "waits until the condition Valid is False, and for an event with this message", s.componentsInvalid)
	sc.Step(`^the server runs "([^"]*)"$`, "asserts firmware versions of the emulated server and of status.components: component=version, …", s.serverRuns)
	sc.Step(`^the next update of the BIOS will fail at (\d+) percent$`, "lets the next BIOS update fail when it is this far", s.breakUpdate)
	sc.Step(`^the update has failed at (\d+) percent$`, "asserts that a task of the BMC has failed at this percentage, or one beside it", s.failedAt)
	sc.Step(`^an error event contains "([^"]*)"$`, "waits for an event with a reason that ends in Error, and this text in its message", s.errorEventSays)
	sc.Step(`^a lab with (\d+) servers? of the model "([^"]*)" and (\d+) of the model "([^"]*)"$`, "starts a lab with servers of two hardware profiles for this scenario alone", s.startMixed)
	sc.Step(`^the operator has registered all servers$`, "registers all servers, and waits until they are available and have FirmwareSchemas", s.registerAll)
	sc.Step(`^servers (\d+) and (\d+) (share a|have different) FirmwareSchemas?$`, "compares the FirmwareSchemas of two servers", s.compareSchemas)
	sc.Step(`^the operator deletes the host of server (\d+)$`, "deletes a BareMetalHost, and waits until it does not exist", s.deleteServer)
	sc.Step(`^the FirmwareSchema of server (\d+) is deleted$`, "waits until the FirmwareSchema that the server had does not exist", s.schemaIsDeleted)
	sc.NegativeStep(`^the FirmwareSchema of server (\d+) still exists$`, "asserts, once the settings of deleted hosts and all references to them are deleted, that the FirmwareSchema that the server had exists", s.schemaExists)
	sc.Step(`^the HostUpdatePolicy allows changes on reboot$`, "creates a HostUpdatePolicy with onReboot for settings and updates", s.allowServicing)
	sc.Step(`^the host has been serviced$`, "waits until operationalStatus is OK and was servicing since the last Given or When", s.hasBeenServiced)
}

// pairs parses "a=b, c=d".
func pairs(list string) ([][2]string, error) {
	var out [][2]string
	for one := range strings.SplitSeq(list, ", ") {
		name, value, ok := strings.Cut(one, "=")
		if !ok || name == "" || value == "" {
			return nil, fmt.Errorf("%q is not of the form name=value", one)
		}
		out = append(out, [2]string{name, value})
	}
	return out, nil
}

func (s *scenario) object(ctx context.Context, o client.Object) error {
	return s.objectOf(ctx, s.server.Name, o)
}

func (s *scenario) objectOf(ctx context.Context, name string, o client.Object) error {
	return s.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: name}, o)
}

// edit waits for an object of the host's name, and changes it.
func edit[T client.Object](ctx context.Context, s *scenario, o T, change func(T)) error {
	s.bootsBefore = s.machine().Boots
	err := eventually(ctx, "there is the object to change", func(ctx context.Context) (bool, string, error) {
		err := s.object(ctx, o)
		return err == nil, fmt.Sprint(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return err
	}
	return retry.RetryOnConflict(conflictBackoff, func() error {
		if err := s.object(ctx, o); err != nil {
			return err
		}
		change(o)
		return s.kube.Update(ctx, o)
	})
}

func desired(list string) (metal3.DesiredSettingsMap, error) {
	all, err := pairs(list)
	if err != nil {
		return nil, err
	}
	out := metal3.DesiredSettingsMap{}
	for _, p := range all {
		v := intstr.Parse(p[1]) // an integer stays one
		if v.String() != p[1] {
			v = intstr.FromString(p[1]) // "012" is text that a user has written
		}
		out[p[0]] = v
	}
	return out, nil
}

func (s *scenario) setSettings(ctx context.Context, list string) error {
	settings, err := desired(list)
	if err != nil {
		return err
	}
	return edit(ctx, s, &metal3.HostFirmwareSettings{}, func(o *metal3.HostFirmwareSettings) { o.Spec.Settings = settings })
}

func (s *scenario) createSettings(ctx context.Context, list string) error {
	settings, err := desired(list)
	if err != nil {
		return err
	}
	_, h := lab.Objects(s.server)
	return s.create(ctx, &metal3.HostFirmwareSettings{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: h.Name},
		Spec:       metal3.HostFirmwareSettingsSpec{Settings: settings},
	})
}

// observed reports whether a condition has a status for the current generation.
func observed(conditions []metav1.Condition, kind string, status metav1.ConditionStatus, generation int64) bool {
	c := meta.FindStatusCondition(conditions, kind)
	return c != nil && c.ObservedGeneration == generation && c.Status == status
}

func (s *scenario) awaitSettings(ctx context.Context, what string, ok func(*metal3.HostFirmwareSettings) bool) error {
	return eventually(ctx, what, func(ctx context.Context) (bool, string, error) {
		var o metal3.HostFirmwareSettings
		err := s.object(ctx, &o)
		return err == nil && ok(&o), fmt.Sprintf("%+v %v", o.Status.Conditions, o.Annotations), client.IgnoreNotFound(err)
	})
}

// noAttempt reports whether the controller works on no change of an object: it counts its
// attempts in an annotation. Those of kubectl are the operator's.
func noAttempt(o client.Object) bool {
	for name := range o.GetAnnotations() {
		if !strings.HasPrefix(name, "kubectl.kubernetes.io/") {
			return false
		}
	}
	return true
}

func (s *scenario) settingsApplied(ctx context.Context) error {
	err := s.awaitSettings(ctx, "the settings are applied", func(o *metal3.HostFirmwareSettings) bool {
		return observed(o.Status.Conditions, "ChangeDetected", metav1.ConditionFalse, o.Generation) &&
			observed(o.Status.Conditions, "Valid", metav1.ConditionTrue, o.Generation) && noAttempt(o)
	})
	if err != nil {
		return err
	}
	return s.awaitState(ctx, string(metal3.StateAvailable))
}

func (s *scenario) settingsValid(ctx context.Context) error {
	return s.awaitSettings(ctx, "the settings are valid", func(o *metal3.HostFirmwareSettings) bool {
		return observed(o.Status.Conditions, "Valid", metav1.ConditionTrue, o.Generation)
	})
}

func (s *scenario) settingsInvalid(ctx context.Context, why string) error {
	err := s.awaitSettings(ctx, "the settings are invalid", func(o *metal3.HostFirmwareSettings) bool {
		return observed(o.Status.Conditions, "Valid", metav1.ConditionFalse, o.Generation) &&
			observed(o.Status.Conditions, "ChangeDetected", metav1.ConditionTrue, o.Generation)
	})
	if err != nil {
		return err
	}
	return s.eventSays(ctx, "ValidationFailed", "Invalid BIOS setting: "+why)
}

func (s *scenario) eventSays(ctx context.Context, reason, message string) error {
	return eventually(ctx, "an event "+reason+" "+message, func(ctx context.Context) (bool, string, error) {
		events, err := s.events(ctx)
		var all []string
		for _, e := range events {
			if e.Reason == reason {
				all = append(all, e.Message)
			}
		}
		return slices.Contains(all, message), fmt.Sprintf("%q", all), err
	})
}

// bios returns the server's BIOS settings as text.
func (s *scenario) bios() map[string]string {
	out := map[string]string{}
	for _, one := range s.machine().BIOSSettings() {
		out[one.Name] = one.Value.String()
	}
	return out
}

func (s *scenario) biosHas(list string) error {
	all, err := pairs(list)
	if err != nil {
		return err
	}
	settings := s.bios()
	for _, p := range all {
		if value, ok := settings[p[0]]; !ok || value != p[1] {
			return fmt.Errorf("%s is %q, want %s", p[0], value, p[1])
		}
	}
	return nil
}

func (s *scenario) settingsAreTheServers(ctx context.Context) error {
	return s.awaitSettings(ctx, "the settings are the server's", func(o *metal3.HostFirmwareSettings) bool {
		n := 0
		for name, v := range s.bios() {
			if strings.Contains(name, "Password") {
				continue
			}
			if n++; o.Status.Settings[name] != v {
				return false
			}
		}
		return n > 0 && n == len(o.Status.Settings)
	})
}

func (s *scenario) schemaIsOfModel(ctx context.Context) error {
	var o metal3.HostFirmwareSettings
	if err := s.object(ctx, &o); err != nil {
		return err
	}
	if o.Status.FirmwareSchema == nil {
		return errors.New("the settings refer to no FirmwareSchema")
	}
	var schema metal3.FirmwareSchema
	if err := s.objectOf(ctx, o.Status.FirmwareSchema.Name, &schema); err != nil {
		return err
	}
	v := s.machine()
	if len(schema.Spec.Schema) == 0 || schema.Spec.HardwareVendor != v.Profile.Manufacturer || schema.Spec.HardwareModel != v.Profile.Model || len(schema.Spec.Schema) != len(o.Status.Settings) {
		return fmt.Errorf("schema %s is of %s %s with %d settings", schema.Name, schema.Spec.HardwareVendor, schema.Spec.HardwareModel, len(schema.Spec.Schema))
	}
	return nil
}

func (s *scenario) awaitComponents(ctx context.Context, what string, ok func(*metal3.HostFirmwareComponents) bool) error {
	return eventually(ctx, what, func(ctx context.Context) (bool, string, error) {
		var o metal3.HostFirmwareComponents
		err := s.object(ctx, &o)
		return err == nil && ok(&o), fmt.Sprintf("%+v %v", o.Status, o.Annotations), client.IgnoreNotFound(err)
	})
}

func (s *scenario) componentsAre(ctx context.Context, list string) error {
	return s.awaitComponents(ctx, "the components are "+list, func(o *metal3.HostFirmwareComponents) bool {
		var names []string
		for _, c := range o.Status.Components {
			names = append(names, c.Component)
		}
		return strings.Join(names, ", ") == list
	})
}

func (s *scenario) startedFor(ctx context.Context, want string) error {
	if err := s.letControllersAct(ctx); err != nil {
		return err
	}
	if got := s.machine().Boots - s.bootsBefore; strconv.FormatUint(got, 10) != want {
		return fmt.Errorf("the server has been started %d times, want %s", got, want)
	}
	return nil
}

func (s *scenario) registryLags(name string) error {
	r := s.machine().Profile.Firmware.Model.Registry()
	i := slices.IndexFunc(r.Attributes, func(a firmware.Attribute) bool { return a.Name == name })
	if i < 0 {
		return fmt.Errorf("the server has no setting %s", name)
	}
	rule, err := s.lab.Rack().AddFault(fault.Rule{
		BMC: s.server.Name, Path: "/redfish/v1/Registries/" + r.ID + "/*",
		Set: fault.Values{fmt.Sprintf("/RegistryEntries/Attributes/%d/AttributeName", i): name + "Formerly"},
	})
	s.faults = append(s.faults, rule.ID)
	return err
}

func (s *scenario) registryCatchesUp() error {
	id := s.faults[len(s.faults)-1]
	s.faults = s.faults[:len(s.faults)-1]
	return s.lab.Rack().RemoveFault(id)
}

// componentKinds are the kinds of firmware images, by component.
var componentKinds = map[string]firmware.Kind{"bios": firmware.KindBIOS, "bmc": firmware.KindBMC, "nic": firmware.KindNIC}

// serve writes a firmware image for a component, and returns its URL.
func (s *scenario) serve(component, version string) (string, error) {
	kind, _, _ := strings.Cut(component, ":")
	x, ok := s.running(component)
	if !ok {
		return "", fmt.Errorf("the server has no %s", component)
	}
	var b bytes.Buffer
	h := firmware.Image{Kind: componentKinds[kind], Vendor: x.Vendor, Model: x.Model, Version: version}
	if _, err := firmware.BuildImage(&b, h, strings.NewReader(strings.Repeat("payload ", 1000))); err != nil {
		return "", err
	}
	file := fmt.Sprintf("%s-%s.img", kind, version)
	if err := os.WriteFile(filepath.Join(s.dir, lab.ImagesDir, file), b.Bytes(), 0o600); err != nil {
		return "", err
	}
	return s.lab.ImagesURL() + file, nil
}

// running returns the firmware of a component of the emulated server.
func (s *scenario) running(component string) (firmware.Inventory, bool) {
	kind, _, _ := strings.Cut(component, ":")
	all := s.machine().Components()
	i := slices.IndexFunc(all, func(x firmware.Inventory) bool { return x.Kind == componentKinds[kind] })
	if i < 0 {
		return firmware.Inventory{}, false
	}
	return all[i], true
}

func (s *scenario) updateFirmware(ctx context.Context, list string) error {
	all, err := pairs(list)
	if err != nil {
		return err
	}
	var want []metal3.FirmwareUpdate
	for _, p := range all {
		url, err := s.serve(p[0], p[1])
		if err != nil {
			return err
		}
		want = append(want, metal3.FirmwareUpdate{Component: p[0], URL: url})
	}
	return s.setUpdates(ctx, want...)
}

func (s *scenario) setUpdates(ctx context.Context, want ...metal3.FirmwareUpdate) error {
	return edit(ctx, s, &metal3.HostFirmwareComponents{}, func(o *metal3.HostFirmwareComponents) { o.Spec.Updates = want })
}

func (s *scenario) updateFromNowhere(ctx context.Context) error {
	return s.setUpdates(ctx, metal3.FirmwareUpdate{Component: "bios", URL: s.lab.ImagesURL() + "nowhere.img"})
}

func (s *scenario) updateComponent(ctx context.Context, component string) error {
	return s.setUpdates(ctx, metal3.FirmwareUpdate{Component: component, URL: s.lab.ImagesURL() + "nowhere.img"})
}

func (s *scenario) firmwareUpdated(ctx context.Context) error {
	err := s.awaitComponents(ctx, "the firmware is updated", func(o *metal3.HostFirmwareComponents) bool {
		return observed(o.Status.Conditions, "ChangeDetected", metav1.ConditionFalse, o.Generation) && noAttempt(o)
	})
	if err != nil {
		return err
	}
	return s.awaitState(ctx, string(metal3.StateAvailable))
}

func (s *scenario) componentsInvalid(ctx context.Context, why string) error {
	err := s.awaitComponents(ctx, "the components are invalid", func(o *metal3.HostFirmwareComponents) bool {
		return observed(o.Status.Conditions, "Valid", metav1.ConditionFalse, o.Generation)
	})
	if err != nil {
		return err
	}
	return s.eventSays(ctx, "ValidationFailed", "Invalid Firmware Components: ["+why+"]")
}

func (s *scenario) serverRuns(ctx context.Context, list string) error {
	all, err := pairs(list)
	if err != nil {
		return err
	}
	var o metal3.HostFirmwareComponents
	if err := s.object(ctx, &o); err != nil {
		return err
	}
	for _, p := range all {
		x, _ := s.running(p[0])
		i := slices.IndexFunc(o.Status.Components, func(c metal3.FirmwareComponentStatus) bool { return c.Component == p[0] })
		if x.Active.Version != p[1] || x.Broken || i < 0 || o.Status.Components[i].CurrentVersion != p[1] || o.Status.Components[i].LastVersionFlashed != p[1] {
			return fmt.Errorf("%s runs %s (broken: %v), the status says %+v; want %s", p[0], x.Active.Version, x.Broken, o.Status.Components, p[1])
		}
	}
	return nil
}

// breakUpdate converts a percentage of the whole update to one of its phase
// Applying, in which the update fails.
func (s *scenario) breakUpdate(ctx context.Context, percent int) error {
	x, _ := s.running("bios")
	t := x.Timings
	before := t.Transfer + t.Verify
	elapsed := (before+t.Apply+t.Restart)*time.Duration(percent)/100 - before
	at := int((elapsed*100 + t.Apply - 1) / t.Apply)
	return s.host().Apply(ctx, machine.Firmware{Command: firmware.Break{Component: x.ID, Phase: firmware.Applying, At: at}})
}

func (s *scenario) failedAt(ctx context.Context, percent int) error {
	d, err := s.lab.Control().Host(ctx, s.server.Name)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(d.Tasks, func(t control.Task) bool { return t.Fault != "" })
	if i < 0 || d.Tasks[i].Percent < percent-1 || d.Tasks[i].Percent > percent+1 {
		return fmt.Errorf("tasks %+v, want one that failed at %d %%", d.Tasks, percent)
	}
	return nil
}

func (s *scenario) errorEventSays(ctx context.Context, text string) error {
	return eventually(ctx, "an error tells of "+text, func(ctx context.Context) (bool, string, error) {
		events, err := s.events(ctx)
		var all []string
		for _, e := range events {
			if strings.HasSuffix(e.Reason, "Error") {
				all = append(all, e.Message)
			}
		}
		return slices.ContainsFunc(all, func(m string) bool { return strings.Contains(m, text) }), fmt.Sprintf("%q", all), err
	})
}

func (s *scenario) schemaName(ctx context.Context, server int) (string, error) {
	var o metal3.HostFirmwareSettings
	if err := s.objectOf(ctx, s.servers[server-1].Name, &o); err != nil {
		return "", err
	}
	if o.Status.FirmwareSchema == nil {
		return "", fmt.Errorf("the settings of server %d have no schema", server)
	}
	return o.Status.FirmwareSchema.Name, nil
}

func (s *scenario) compareSchemas(ctx context.Context, a, b int, how string) error {
	x, err := s.schemaName(ctx, a)
	if err != nil {
		return err
	}
	y, err := s.schemaName(ctx, b)
	if err != nil {
		return err
	}
	if s.schemas == nil {
		s.schemas = map[int]string{}
	}
	s.schemas[a], s.schemas[b] = x, y
	if (x == y) != (how == "share a") {
		return fmt.Errorf("servers %d and %d have the schemas %s and %s", a, b, x, y)
	}
	return nil
}

func (s *scenario) schemaIsDeleted(ctx context.Context, server int) error {
	return eventually(ctx, "the schema of server "+strconv.Itoa(server)+" is deleted", func(ctx context.Context) (bool, string, error) {
		var o metal3.FirmwareSchema
		err := s.objectOf(ctx, s.schemas[server], &o)
		return apierrors.IsNotFound(err), fmt.Sprintf("owners %+v", o.OwnerReferences), client.IgnoreNotFound(err)
	})
}

// schemaExists waits for the garbage collector: it deletes the settings of a host that does
// not exist, and then their references in the schema, or the schema.
func (s *scenario) schemaExists(ctx context.Context, server int) error {
	return eventually(ctx, "nothing refers to deleted hosts", func(ctx context.Context) (bool, string, error) {
		settings := map[types.UID]bool{}
		for _, one := range s.servers {
			var h metal3.BareMetalHost
			var o metal3.HostFirmwareSettings
			hostErr, err := s.objectOf(ctx, one.Name, &h), s.objectOf(ctx, one.Name, &o)
			if failed := errors.Join(client.IgnoreNotFound(hostErr), client.IgnoreNotFound(err)); failed != nil {
				return false, "", failed
			}
			if apierrors.IsNotFound(hostErr) && err == nil {
				return false, "the settings of " + one.Name + " exist", nil
			}
			settings[o.UID] = err == nil
		}
		var o metal3.FirmwareSchema
		if err := s.objectOf(ctx, s.schemas[server], &o); err != nil {
			return false, "", err
		}
		gone := slices.ContainsFunc(o.OwnerReferences, func(r metav1.OwnerReference) bool { return !settings[r.UID] })
		return !gone && len(o.OwnerReferences) > 0, fmt.Sprintf("owners %+v", o.OwnerReferences), nil
	})
}

func (s *scenario) registerAll(ctx context.Context) error {
	for _, server := range s.servers {
		secret, host := lab.Objects(server)
		if err := s.create(ctx, secret, host); err != nil {
			return err
		}
	}
	for i, server := range s.servers {
		err := eventually(ctx, server.Name+" is available", func(ctx context.Context) (bool, string, error) {
			var h metal3.BareMetalHost
			if err := s.objectOf(ctx, server.Name, &h); err != nil {
				return false, "", err
			}
			_, err := s.schemaName(ctx, i+1)
			return err == nil && h.Status.Provisioning.State == metal3.StateAvailable, fmt.Sprint(h.Status.Provisioning.State, err), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *scenario) deleteServer(ctx context.Context, n int) error {
	name := s.servers[n-1].Name
	_, host := lab.Objects(s.servers[n-1])
	if err := s.kube.Delete(ctx, host); err != nil {
		return err
	}
	return eventually(ctx, name+" is gone", func(ctx context.Context) (bool, string, error) {
		var h metal3.BareMetalHost
		err := s.objectOf(ctx, name, &h)
		return apierrors.IsNotFound(err), string(h.Status.Provisioning.State), client.IgnoreNotFound(err)
	})
}

func (s *scenario) allowServicing(ctx context.Context) error {
	_, h := lab.Objects(s.server)
	return s.create(ctx, &metal3.HostUpdatePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: h.Name},
		Spec:       metal3.HostUpdatePolicySpec{FirmwareSettings: metal3.HostUpdatePolicyOnReboot, FirmwareUpdates: metal3.HostUpdatePolicyOnReboot},
	})
}

func (s *scenario) hasBeenServiced(ctx context.Context) error {
	return eventually(ctx, "the host has been serviced", func(context.Context) (bool, string, error) {
		h := s.recorder.host()
		servicing := s.recorder.hasReported(func(r report) bool { return r.status == metal3.OperationalStatusServicing })
		return h != nil && servicing && h.Status.OperationalStatus == metal3.OperationalStatusOK,
			s.recorder.String(), nil
	})
}
