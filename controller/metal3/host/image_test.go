package host

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
)

// secret adds a Secret to the host's namespace.
func (b *bench) secret(name string, kind corev1.SecretType, data map[string]string) {
	b.t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "lab"}, Type: kind, Data: map[string][]byte{}}
	for k, v := range data {
		s.Data[k] = []byte(v)
	}
	if err := b.kube.Create(context.Background(), s); err != nil {
		b.t.Fatal(err)
	}
}

func ref(name string) *corev1.SecretReference { return &corev1.SecretReference{Name: name} }

// repeating is half a megabyte of YAML that stands for 600 MB.
var repeating = "a: &a [" + strings.Repeat("password, ", 1<<14) + "]\nb: [" + strings.Repeat("*a, ", 1<<13) + "]"

// B-115 B-155
func TestConfigDrive(t *testing.T) {
	defaults := `"local-hostname":"node-0","local_hostname":"node-0","metal3-name":"node-0","metal3-namespace":"lab"`
	for _, tt := range []struct {
		name    string
		secrets map[string]map[string]string
		spec    func(s *metal3.BareMetalHostSpec)
		want    *job.ConfigDrive
		err     string
	}{
		{
			name: "nothing is named", spec: func(*metal3.BareMetalHostSpec) {},
			want: &job.ConfigDrive{Optional: true, MetaData: []byte(`{` + defaults + `,"name":"node-0","uuid":"u-1"}`)},
		},
		{
			name: "user data", secrets: map[string]map[string]string{"u": {"userData": "#cloud-config"}},
			spec: func(s *metal3.BareMetalHostSpec) { s.UserData = ref("u") },
			want: &job.ConfigDrive{UserData: []byte("#cloud-config"), MetaData: []byte(`{` + defaults + `,"name":"node-0","uuid":"u-1"}`)},
		},
		{
			name:    "metadata over the defaults, in YAML",
			secrets: map[string]map[string]string{"m": {"metaData": "name: web\nrack: 7\n"}},
			spec:    func(s *metal3.BareMetalHostSpec) { s.MetaData = ref("m") },
			want:    &job.ConfigDrive{MetaData: []byte(`{` + defaults + `,"name":"web","rack":7,"uuid":"u-1"}`)},
		},
		{
			name:    "network data under the other key",
			secrets: map[string]map[string]string{"n": {"value": "links:\n- id: eno1\n"}},
			spec:    func(s *metal3.BareMetalHostSpec) { s.NetworkData = ref("n") },
			want:    &job.ConfigDrive{NetworkData: []byte(`{"links":[{"id":"eno1"}]}`), MetaData: []byte(`{` + defaults + `,"name":"node-0","uuid":"u-1"}`)},
		},
		{
			name:    "network data of the agent's own",
			secrets: map[string]map[string]string{"n": {"networkData": "{}"}},
			spec:    func(s *metal3.BareMetalHostSpec) { s.PreprovisioningNetworkDataName = "n" },
			want:    &job.ConfigDrive{NetworkData: []byte(`{}`), MetaData: []byte(`{` + defaults + `,"name":"node-0","uuid":"u-1"}`)},
		},
		{
			name:    "a secret without network data",
			secrets: map[string]map[string]string{"n": {"other": "x"}},
			spec:    func(s *metal3.BareMetalHostSpec) { s.NetworkData = ref("n") },
			want:    &job.ConfigDrive{MetaData: []byte(`{` + defaults + `,"name":"node-0","uuid":"u-1"}`)},
		},
		{
			name: "a secret without user data", secrets: map[string]map[string]string{"u": {"other": "x"}},
			spec: func(s *metal3.BareMetalHostSpec) { s.UserData = ref("u") },
			err:  "Secret u does not contain key userData",
		},
		{name: "no secret", spec: func(s *metal3.BareMetalHostSpec) { s.UserData = ref("u") }, err: "failed to fetch userData secret lab/u"},
		{
			name: "of another namespace",
			spec: func(s *metal3.BareMetalHostSpec) {
				s.MetaData = &corev1.SecretReference{Name: "m", Namespace: "kube-system"}
			},
			err: "failed to fetch metaData secret kube-system/m",
		},
		{
			name: "metadata of garbage", secrets: map[string]map[string]string{"m": {"metaData": "pass: [word"}},
			spec: func(s *metal3.BareMetalHostSpec) { s.MetaData = ref("m") },
			err:  "failed to unmarshal metadata from secret",
		},
		{
			name: "network data of a list", secrets: map[string]map[string]string{"n": {"networkData": "- pass"}},
			spec: func(s *metal3.BareMetalHostSpec) { s.NetworkData = ref("n") },
			err:  "failed to unmarshal network_data.json from secret",
		},
		{
			name: "network data of aliases", secrets: map[string]map[string]string{"n": {"networkData": repeating}},
			spec: func(s *metal3.BareMetalHostSpec) { s.NetworkData = ref("n") },
			err:  "network data: line 2: with its aliases the document has more than",
		},
		{
			name: "metadata of aliases", secrets: map[string]map[string]string{"m": {"metaData": repeating}},
			spec: func(s *metal3.BareMetalHostSpec) { s.MetaData = ref("m") },
			err:  "metadata: line 2: with its aliases the document has more than",
		},
		{
			name: "metadata of null", secrets: map[string]map[string]string{"m": {"metaData": "null"}},
			spec: func(s *metal3.BareMetalHostSpec) { s.MetaData = ref("m") },
			want: &job.ConfigDrive{MetaData: []byte(`{` + defaults + `,"name":"node-0","uuid":"u-1"}`)},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, 1, func(h *metal3.BareMetalHost) { tt.spec(&h.Spec) })
			for name, data := range tt.secrets {
				b.secret(name, corev1.SecretTypeOpaque, data)
			}
			got, err := b.r.configDrive(t.Context(), b.host())
			if tt.err != "" {
				var again *configDataError
				if err == nil || !strings.Contains(err.Error(), tt.err) || !errors.As(err, &again) || strings.Contains(err.Error(), "pass") {
					t.Errorf("configDrive error = %v, want %q, to be tried again", err, tt.err)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("configDrive error = %v (-want +got):\n%s", err, diff)
			}
			for name := range tt.secrets {
				var s corev1.Secret
				if err := b.kube.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: name}, &s); err != nil || s.Labels[secretLabel] != secretLabelValue || len(s.Finalizers)+len(s.OwnerReferences) > 0 {
					t.Errorf("secret %s: %v, labels %v, finalizers %v; want the label alone", name, err, s.Labels, s.Finalizers)
				}
			}
		})
	}
}

// B-155: invalid configuration data is not an error of the host; once it is fixed
// the image is written, once.
func TestBadConfigDataIsRetried(t *testing.T) {
	b := newBench(t, 1, func(h *metal3.BareMetalHost) {
		withImage(h)
		h.Spec.UserData = ref("u")
	})
	var data *configDataError
	for range 200 {
		if _, err := b.pass(); errors.As(err, &data) {
			break
		}
	}
	if data == nil || b.host().Status.ErrorType != "" || b.host().Status.Provisioning.State != metal3.StateProvisioning {
		t.Fatalf("error %v, status %+v: want it to be tried again", data, b.host().Status)
	}
	b.secret("u", corev1.SecretTypeOpaque, map[string]string{"userData": "#cloud-config"})
	b.until("provisioned", in(metal3.StateProvisioned))
	if n := len(b.ran); n != 3 || b.ran[2] != job.Write {
		t.Errorf("the agent ran %v", b.ran)
	}
	if d := b.last.Write.ConfigDrive; d == nil || string(d.UserData) != "#cloud-config" {
		t.Errorf("the agent was given config drive %+v", d)
	}
}

// B-154
func TestRegistryAuth(t *testing.T) {
	account := base64.StdEncoding.EncodeToString([]byte("lab:pass:word"))
	for _, tt := range []struct {
		name  string
		kind  corev1.SecretType
		data  map[string]string
		want  *job.RegistryAuth
		err   string
		event string
	}{
		{
			name: "dockerconfigjson", kind: corev1.SecretTypeDockerConfigJson,
			data: map[string]string{".dockerconfigjson": `{"auths":{"other.example":{"auth":"eDp5"},"https://reg.example:5000/v1/":{"auth":"` + account + `"}}}`},
			want: &job.RegistryAuth{Username: "lab", Password: "pass:word"},
		},
		{
			name: "dockercfg", kind: corev1.SecretTypeDockercfg,
			data: map[string]string{".dockercfg": `{"reg.example:5000":{"username":"lab","password":"word"}}`},
			want: &job.RegistryAuth{Username: "lab", Password: "word"},
		},
		{
			name: "another registry's", kind: corev1.SecretTypeDockerConfigJson,
			data: map[string]string{".dockerconfigjson": `{"auths":{"reg.example":{"auth":"` + account + `"}}}`},
			err:  `failed to extract credentials from secret "s": registry "reg.example:5000" not found in auth config`, event: "ImageAuthParseError",
		},
		{
			name: "garbage", kind: corev1.SecretTypeDockerConfigJson, data: map[string]string{".dockerconfigjson": "pass"},
			err: `failed to extract credentials from secret "s": it is no Docker configuration`, event: "ImageAuthParseError",
		},
		{
			name: "no password", kind: corev1.SecretTypeDockerConfigJson,
			data: map[string]string{".dockerconfigjson": `{"auths":{"reg.example:5000":{"auth":"bGFi"}}}`},
			err:  "auth of reg.example:5000 is not USER:PASSWORD in base64", event: "ImageAuthParseError",
		},
		{
			name: "opaque", kind: corev1.SecretTypeOpaque, data: map[string]string{"username": "lab"},
			err:   `secret "s" has unsupported type "Opaque"; expected "kubernetes.io/dockerconfigjson" or "kubernetes.io/dockercfg"`,
			event: "ImageAuthFormatUnsupported",
		},
		{name: "none", err: `auth secret "s" not found in namespace "lab"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, 1, func(h *metal3.BareMetalHost) {
				h.Spec.Image = &metal3.Image{URL: "oci://reg.example:5000/os:1", OCIAuthSecretName: ptr.To("s")}
			})
			if tt.kind != "" {
				b.secret("s", tt.kind, tt.data)
			}
			got, err := b.r.registryAuth(t.Context(), b.host())
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("registryAuth (-want +got):\n%s", diff)
			}
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("registryAuth error = %v, want %q", err, tt.err)
			}
			var events corev1.EventList
			if err := b.kube.List(t.Context(), &events); err != nil {
				t.Fatal(err)
			}
			reasons := ""
			for _, e := range events.Items {
				reasons += e.Reason
			}
			if reasons != tt.event {
				t.Errorf("events %q, want %q", reasons, tt.event)
			}
			if tt.err == "" {
				return
			}
			b.until("error", func(h *metal3.BareMetalHost) bool { return h.Status.ErrorType != "" })
			if s := b.host().Status; s.ErrorType != metal3.ProvisioningError || !strings.Contains(s.ErrorMessage, tt.err) {
				t.Errorf("status %s: %s", s.ErrorType, s.ErrorMessage)
			}
		})
	}
}

// B-60 B-150 B-151 B-153
func TestImagesThatCannotBeDeployed(t *testing.T) {
	sum := "d41d8cd98f00b204e9800998ecf8427e"
	for _, tt := range []struct {
		image metal3.Image
		want  string
	}{
		{metal3.Image{URL: imageURL}, "Validation failed: checksum is required for normal images"},
		{metal3.Image{URL: imageURL, Checksum: sum, ChecksumType: "crc"}, "Validation failed: unknown checksumType crc, supported are"},
		{metal3.Image{URL: "oci://h/x", Checksum: sum}, "Validation failed: spec.image.checksum must be empty for OCI images (oci:// images have embedded checksums)"},
		{metal3.Image{URL: "oci://h/x", DiskFormat: ptr.To(liveISO)}, "host validation error: a live ISO cannot be booted from oci://h/x"},
		{metal3.Image{URL: imageURL, Checksum: sum, DiskFormat: ptr.To("vhd")}, "host validation error: image format vhd cannot be written"},
	} {
		h := &metal3.BareMetalHost{Spec: metal3.BareMetalHostSpec{Image: &tt.image}}
		if _, err := writeSpec(h); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("writeSpec(%+v) error = %v, want %q", tt.image, err, tt.want)
		}
	}
	for _, good := range []metal3.Image{
		{URL: "oci://h/x"}, {URL: imageURL, DiskFormat: ptr.To(liveISO)}, {URL: imageURL, Checksum: sum, DiskFormat: ptr.To("vmdk")}, {URL: imageURL, Checksum: sum, DiskFormat: ptr.To("vdi"), ChecksumType: metal3.AutoChecksum},
	} {
		if _, err := writeSpec(&metal3.BareMetalHost{Spec: metal3.BareMetalHostSpec{Image: &good}}); err != nil {
			t.Errorf("writeSpec(%+v) error = %v", good, err)
		}
	}
}

// B-153: the ISO is booted, the disks are cleaned and not written, and the ISO is
// ejected when the host is deprovisioned.
func TestLiveISO(t *testing.T) {
	const iso = "http://192.0.2.1/live.iso"
	for _, cleaning := range []metal3.AutomatedCleaningMode{metal3.CleaningModeMetadata, metal3.CleaningModeDisabled} {
		t.Run(string(cleaning), func(t *testing.T) {
			b := newBench(t, 1, func(h *metal3.BareMetalHost) {
				h.Spec.Image = &metal3.Image{URL: iso, DiskFormat: ptr.To(liveISO)}
				h.Spec.AutomatedCleaningMode = cleaning
				h.Spec.UserData = ref("nobody reads it")
			})
			b.until("provisioned", in(metal3.StateProvisioned))
			sys, media := b.bmc.Now()
			if media.Image != iso || sys.Power != bmc.On {
				t.Errorf("power %s, the drive holds %q", sys.Power, media.Image)
			}
			if got := b.host().Status.Provisioning.Image.URL; got != iso {
				t.Errorf("status.provisioning.image.url %q", got)
			}
			boots := 0
			for _, c := range b.bmc.Calls() {
				if c.Verb == bmctest.SetBoot && c.Boot.Persistent && c.Boot.Device == bmc.BootCD {
					boots++
				}
			}
			if boots != 1 {
				t.Errorf("the CD was made the boot device %d times, want once", boots)
			}
			b.change(func(h *metal3.BareMetalHost) { h.Spec.Image = nil })
			b.until("available", in(metal3.StateAvailable))
			if _, media := b.bmc.Now(); media.Image != "" {
				t.Errorf("afterwards the drive holds %q", media.Image)
			}
			for _, k := range b.ran {
				if k == job.Write {
					t.Error("something was written")
				}
			}
		})
	}
}

// B-156: the agent runs the method, with and without an image.
func TestCustomDeploy(t *testing.T) {
	b := newBench(t, 1, func(h *metal3.BareMetalHost) { h.Spec.CustomDeploy = &metal3.CustomDeploy{Method: "install_ours"} })
	b.until("provisioned", in(metal3.StateProvisioned))
	if want := []job.Kind{job.Inventory, job.Clean, job.Custom}; !cmp.Equal(b.ran, want) {
		t.Errorf("the agent ran %v, want %v", b.ran, want)
	}
	if b.last.Custom.Method != "install_ours" || b.last.Custom.Write.URL != "" {
		t.Errorf("the agent was given %+v", b.last.Custom)
	}
	if d := b.host().Status.Provisioning.CustomDeploy; d == nil || d.Method != "install_ours" {
		t.Errorf("status.provisioning.customDeploy %+v", d)
	}
	b.change(func(h *metal3.BareMetalHost) { h.Spec.CustomDeploy.Method = "another"; withImage(h) })
	b.until("deprovisioning", in(metal3.StateDeprovisioning))
	b.until("provisioned", in(metal3.StateProvisioned))
	if b.last.Custom.Method != "another" || b.last.Custom.Write.URL != imageURL {
		t.Errorf("the agent was given %+v", b.last.Custom)
	}
	b.change(func(h *metal3.BareMetalHost) { h.Spec.CustomDeploy, h.Spec.Image = nil, nil })
	b.until("available", in(metal3.StateAvailable))
	if d := b.host().Status.Provisioning.CustomDeploy; d != nil {
		t.Errorf("afterwards status.provisioning.customDeploy %+v", d)
	}
}

func TestCustomDeployThatFails(t *testing.T) {
	b := newBench(t, 1, func(h *metal3.BareMetalHost) { h.Spec.CustomDeploy = &metal3.CustomDeploy{Method: "unknown"} })
	b.answers[job.Custom] = job.Report{State: job.Failed, Error: "no such method"}
	b.until("error", func(h *metal3.BareMetalHost) bool { return h.Status.ErrorType != "" })
	if s := b.host().Status; s.ErrorType != metal3.ProvisioningError || s.ErrorMessage != "Custom deploy method unknown failed: no such method" {
		t.Errorf("status %s: %s", s.ErrorType, s.ErrorMessage)
	}
}
