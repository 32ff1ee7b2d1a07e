package machines

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	hostprofilev1 "github.com/metalab-dev/metalab/controller/api/hostprofile/v1alpha1"
)

// profile returns a profile of one disk of at least this size.
func profile(minSize hostprofilev1.Size) *hostprofilev1.BareMetalHostProfile {
	return &hostprofilev1.BareMetalHostProfile{ObjectMeta: meta("large"), Spec: hostprofilev1.BareMetalHostProfileSpec{
		Devices:          []hostprofilev1.ProfileDevice{{Device: hostprofilev1.Device{MinSize: minSize, WorkBy: "by_name"}, Partitions: []hostprofilev1.Partition{{Name: "root"}}}},
		KernelParameters: &hostprofilev1.KernelParameters{Sysctl: map[string]hostprofilev1.SysctlValue{"kernel.panic": "30"}},
	}}
}

// withProfile returns a Machine that names the profile.
func withProfile(name string) *clusterv1.Machine {
	m := machine(name)
	m.Spec.ProviderSpec.Value.BareMetalHostProfile = &baremetalv1.ObjectReference{Name: "large"}
	return m
}

// profileCondition returns the condition of a Machine's profile.
func (l *lab) profileCondition(name string) (out baremetalv1.Condition) {
	l.t.Helper()
	for _, c := range l.machine(name).Status.ProviderStatus.Conditions {
		if c.Type == conditionProfile {
			out = c
		}
	}
	return out
}

// A host whose disks do not match gets no image until the profile has changed; then it gets
// the profile's root device before its image, and loses it when it is free again.
func TestHostIsComparedWithTheProfile(t *testing.T) {
	p := profile("101Gi")
	l := start(t, objects(host("a"), withProfile("m"), p)...)
	l.run()
	const want = "BareMetalHostProfile lab/large does not match BareMetalHost a: spec.devices[0].device (workBy by_name, minSize 101Gi) matches no disk of the server: /dev/sda has 100Gi, less than minSize 101Gi"
	if c := l.profileCondition("m"); c.Ready || c.Message != want {
		t.Errorf("condition of the profile %+v, want %s", c, want)
	}
	if c := l.instance("m"); c.Ready || c.Message != want {
		t.Errorf("condition of the host %+v, want %s", c, want)
	}
	if h := l.host("a"); h.Spec.Image != nil || h.Spec.RootDeviceHints != nil || !claimedBy(h, l.machine("m")) {
		t.Errorf("host that does not match: %+v", h.Spec)
	}
	edit(l, p, func(p *hostprofilev1.BareMetalHostProfile) { p.Spec.Devices[0].Device.MinSize = "100Gi" })
	l.settle()
	hints := &metal3.RootDeviceHints{DeviceName: "/dev/sda"}
	if h := l.host("a"); h.Spec.Image != nil || !cmp.Equal(h.Spec.RootDeviceHints, hints) {
		t.Errorf("host that matches: %+v, want the hints %+v, and no image before they are prepared", h.Spec, hints)
	}
	l.run()
	const note = "BareMetalHostProfile lab/large matches BareMetalHost a; its root device is /dev/sda; not applied, the image has the layout of its disk: spec.devices[].partitions"
	if c := l.profileCondition("m"); !c.Ready || c.Message != note || !l.machine("m").Status.ProviderStatus.Ready {
		t.Errorf("condition %+v of a Machine that is ready %t, want %s", c, l.machine("m").Status.ProviderStatus.Ready, note)
	}
	if text := string(get(l, "m-user-data", new(corev1.Secret)).Data["userData"]); !strings.Contains(text, "/etc/sysctl.d/") {
		t.Errorf("the user data lack the kernel parameters:\n%s", text)
	}
	edit(l, p, func(p *hostprofilev1.BareMetalHostProfile) { p.Spec.Devices[0].Device.MinSize = "1Ti" })
	before := len(l.writes)
	l.run()
	if c := l.profileCondition("m"); !c.Ready || c.Message != note || len(l.writes) > before {
		t.Errorf("a Machine with an image follows its profile: %+v, writes %q", c, l.writes[before:])
	}
	l.must(l.Delete(t.Context(), l.machine("m")))
	l.run()
	if h := l.host("a"); h.Spec.RootDeviceHints != nil || h.Spec.ConsumerRef != nil || len(h.Annotations) > 0 {
		t.Errorf("host that is free: %+v, annotations %v", h.Spec, h.Annotations)
	}
}

// A Machine waits for a profile that does not exist, in the namespace that it names.
func TestMachineWaitsForItsProfile(t *testing.T) {
	m := withProfile("m")
	m.Spec.ProviderSpec.Value.BareMetalHostProfile.Namespace = "profiles"
	inNamespace := profile("1Gi")
	l := start(t, objects(host("a"), m, inNamespace)...)
	l.run()
	const want = `spec.providerSpec.value.bareMetalHostProfile: there is no BareMetalHostProfile "large" in the namespace "profiles": create it, or name another`
	if c := l.profileCondition("m"); c.Ready || c.Message != want || l.instance("m").Message != want || l.host("a").Spec.Image != nil {
		t.Errorf("conditions %+v and %+v, host %+v, want %s", c, l.instance("m"), l.host("a").Spec, want)
	}
	p := profile("1Gi")
	p.Namespace = "profiles"
	if got := l.provider(nil).machinesOfProfile(t.Context(), inNamespace); len(got) > 0 {
		t.Errorf("a profile of another namespace enqueues %v", got)
	}
	if got := l.provider(nil).machinesOfProfile(t.Context(), p); len(got) != 1 || got[0].Name != "m" {
		t.Errorf("the profile enqueues %v, want m", got)
	}
	l.must(l.Create(t.Context(), p))
	l.run()
	if !l.machine("m").Status.ProviderStatus.Ready {
		t.Errorf("the Machine does not go on: %+v", l.machine("m").Status.ProviderStatus)
	}
}

func TestRootDeviceOfAProfile(t *testing.T) {
	hints := metal3.RootDeviceHints{Model: "mine"}
	for _, tt := range []struct {
		name   string
		change func(*metal3.BareMetalHost)
		spec   func(*hostprofilev1.BareMetalHostProfileSpec)
		want   *metal3.RootDeviceHints
		note   string // part of the condition
	}{
		{"hints of the host's user", func(h *metal3.BareMetalHost) { h.Spec.RootDeviceHints = &hints }, nil, &hints, "spec.rootDeviceHints, which it had, select its root device"},
		{"volumes of a RAID", func(h *metal3.BareMetalHost) {
			h.Spec.RAID = &metal3.RAIDConfig{HardwareRAIDVolumes: []metal3.HardwareRAIDVolume{{Level: "1"}}}
		}, nil, nil, "its root device is the first volume of spec.raid"},
		{"hints of another profile", func(h *metal3.BareMetalHost) {
			h.Spec.RootDeviceHints, h.Annotations = &hints, map[string]string{rootDeviceAnnotation: "lab/other"}
		}, nil, &metal3.RootDeviceHints{DeviceName: "/dev/sda"}, "its root device is /dev/sda"},
		{"hints of another profile, and a profile without devices", func(h *metal3.BareMetalHost) {
			h.Spec.RootDeviceHints, h.Annotations = &hints, map[string]string{rootDeviceAnnotation: "lab/other"}
		}, func(s *hostprofilev1.BareMetalHostProfileSpec) { s.Devices = nil }, nil, "matches BareMetalHost a"},
		{"a host without details, and a profile without devices", func(h *metal3.BareMetalHost) { h.Status.HardwareDetails = nil }, func(s *hostprofilev1.BareMetalHostProfileSpec) { s.Devices = nil }, nil, "matches BareMetalHost a"},
	} {
		h, p := host("a"), profile("1Gi")
		tt.change(h)
		if tt.spec != nil {
			tt.spec(&p.Spec)
		}
		h.Status.Provisioning.RootDeviceHints = h.Spec.RootDeviceHints.DeepCopy()
		l := start(t, objects(h, withProfile("m"), p)...)
		l.run()
		if got := l.host("a").Spec; !cmp.Equal(got.RootDeviceHints, tt.want) || got.Image == nil {
			t.Errorf("%s: hints %+v, image %v, want %+v", tt.name, got.RootDeviceHints, got.Image, tt.want)
		}
		if c := l.profileCondition("m"); !c.Ready || !strings.Contains(c.Message, tt.note) {
			t.Errorf("%s: condition %+v, want %s", tt.name, c, tt.note)
		}
	}
}

func TestConditionsOfAProfile(t *testing.T) {
	h := host("a")
	h.Status.HardwareDetails = nil
	l := start(t, objects(h, withProfile("m"), withProfile("without-host"), profile("1Gi"))...)
	l.run()
	for name, want := range map[string]string{
		"m":            "BareMetalHostProfile lab/large: the disks of BareMetalHost a are unknown: let it be inspected (remove the annotation inspect.metal3.io)",
		"without-host": "BareMetalHostProfile lab/large is compared with the disks of a BareMetalHost once one is claimed",
	} {
		if l.hostOf("without-host") != nil { // the other has claimed it
			name = map[string]string{"m": "without-host", "without-host": "m"}[name]
		}
		if c := l.profileCondition(name); c.Ready || c.Message != want {
			t.Errorf("%s: condition %+v, want %s", name, c, want)
		}
	}
	l = start(t, objects(host("a"), machine("m"), profile("1Gi"))...)
	l.run()
	if c := l.profileCondition("m"); c != (baremetalv1.Condition{}) {
		t.Errorf("a Machine without a profile has the condition %+v", c)
	}
	edit(l, l.machine("m"), func(m *clusterv1.Machine) {
		m.Spec.ProviderSpec.Value.BareMetalHostProfile = &baremetalv1.ObjectReference{Name: "large"}
	})
	l.run()
	if c := l.profileCondition("m"); !c.Ready || c.Message != "BareMetalHostProfile lab/large takes effect when a host is provisioned again: BareMetalHost a has its image" {
		t.Errorf("a Machine that names a profile after its host has an image: %+v", c)
	}
}

func TestUserDataOfTheUser(t *testing.T) {
	const field = "spec.providerSpec.value.userData"
	for _, tt := range []struct {
		name   string
		ref    baremetalv1.ObjectReference
		secret map[string][]byte // nil: there is none
		want   string            // message of the condition; "" means that the host gets an image
	}{
		{"no Secret", baremetalv1.ObjectReference{Name: "mine"}, nil, field + `: there is no Secret "mine" in the namespace: create it`},
		{"no name", baremetalv1.ObjectReference{}, nil, field + `: there is no Secret "" in the namespace`},
		{"another namespace", baremetalv1.ObjectReference{Name: "mine", Namespace: "kube-system"}, map[string][]byte{"userData": []byte("#cloud-config\n")}, field + `.namespace: the Secret is in the namespace of the Machine, "lab"`},
		{"no key", baremetalv1.ObjectReference{Name: "mine"}, map[string][]byte{"data": []byte("#cloud-config\n")}, field + `: Secret "mine": give user data in data.userData`},
		{"another format", baremetalv1.ObjectReference{Name: "mine"}, map[string][]byte{"userData": []byte("packages: [vim]\n")}, field + `: Secret "mine": data.userData: begin with the line #cloud-config, or with #! and an interpreter`},
		{"YAML with a mistake", baremetalv1.ObjectReference{Name: "mine"}, map[string][]byte{"value": []byte("#cloud-config\nruncmd: [\n")}, field + `: Secret "mine": data.value: yaml: line `},
		{"the namespace of the Machine", baremetalv1.ObjectReference{Name: "mine", Namespace: ns}, map[string][]byte{"userData": []byte("#cloud-config\ntimezone: Asia/Tokyo\n")}, ""},
		{"another key", baremetalv1.ObjectReference{Name: "mine"}, map[string][]byte{"value": []byte("#cloud-config\ntimezone: Asia/Tokyo\n")}, ""},
	} {
		m := machine("m")
		m.Spec.ProviderSpec.Value.UserData = &tt.ref
		l := start(t, objects(host("a"), m)...)
		if tt.secret != nil {
			l.must(l.Create(t.Context(), &corev1.Secret{ObjectMeta: meta("mine"), Data: tt.secret}))
		}
		l.run()
		if tt.want != "" {
			if c := l.instance("m"); c.Ready || !strings.HasPrefix(c.Message, tt.want) || l.host("a").Spec.Image != nil {
				t.Errorf("%s: condition %+v, image %v, want %s", tt.name, c, l.host("a").Spec.Image, tt.want)
			}
			if r, err := l.provider(nil).Reconcile(t.Context(), ctrl.Request{NamespacedName: key("m")}); err != nil || r.RequeueAfter <= 0 || r.RequeueAfter > time.Minute {
				t.Errorf("%s: the Secret is read again after %s, %v", tt.name, r.RequeueAfter, err)
			}
			continue
		}
		text := strings.Split(string(get(l, "m-user-data", new(corev1.Secret)).Data["userData"]), "\n")
		if !slices.Contains(text, "timezone: Asia/Tokyo") {
			t.Errorf("%s: the host's user data lack the user's:\n%s", tt.name, strings.Join(text, "\n"))
		}
	}
}

// A Secret that is corrected lets the Machine go on.
func TestUserDataThatAreCorrected(t *testing.T) {
	m := machine("m")
	m.Spec.ProviderSpec.Value.UserData = &baremetalv1.ObjectReference{Name: "mine"}
	s := &corev1.Secret{ObjectMeta: meta("mine"), Data: map[string][]byte{"userData": []byte("nothing")}}
	l := start(t, objects(host("a"), m, s)...)
	l.run()
	if l.host("a").Spec.Image != nil {
		t.Fatal("the host has an image")
	}
	edit(l, s, func(s *corev1.Secret) { s.Data["userData"] = []byte("#!/bin/sh\ntrue\n") })
	l.run()
	if !l.machine("m").Status.ProviderStatus.Ready {
		t.Errorf("the Machine does not go on: %+v", l.machine("m").Status.ProviderStatus)
	}
}
