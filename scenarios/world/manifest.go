package world

import (
	"bytes"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/emulator/lab/control"
)

// HostsFile is the name, in the state directory, of the manifest of all servers.
const HostsFile = "hosts.yaml"

// Namespace is where the lab's objects go unless the user says otherwise.
const Namespace = "default"

// Objects are what makes a server known to the controllers: the Secret of its
// BMC's account and its BareMetalHost. No image is asked for.
func Objects(h control.Host) (*corev1.Secret, *metal3.BareMetalHost) {
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: h.Name + "-bmc", Namespace: Namespace},
		Type:       corev1.SecretTypeOpaque,
		StringData: map[string]string{"username": h.Username, "password": h.Password},
	}
	host := &metal3.BareMetalHost{
		TypeMeta:   metav1.TypeMeta{APIVersion: metal3.GroupVersion.String(), Kind: "BareMetalHost"},
		ObjectMeta: metav1.ObjectMeta{Name: h.Name, Namespace: Namespace},
		Spec: metal3.BareMetalHostSpec{
			Online:         true,
			BootMACAddress: h.BootMACAddress,
			BMC:            metal3.BMCDetails{Address: h.BMCAddress, CredentialsName: secret.Name},
		},
	}
	return secret, host
}

// Manifest writes the objects of all servers as YAML for kubectl apply.
func Manifest(hosts []control.Host) ([]byte, error) {
	var b bytes.Buffer
	for _, h := range hosts {
		secret, host := Objects(h)
		for _, o := range []any{secret, host} {
			doc, err := specOnly(o)
			if err != nil {
				return nil, fmt.Errorf("world: manifest of %s: %w", h.Name, err)
			}
			b.WriteString("---\n")
			b.Write(doc)
		}
	}
	return b.Bytes(), nil
}

// specOnly drops what only the API server may write.
func specOnly(o any) ([]byte, error) {
	raw, err := yaml.Marshal(o)
	if err != nil {
		return nil, err
	}
	var m map[string]any
	if err := yaml.Unmarshal(raw, &m); err != nil {
		return nil, err
	}
	delete(m, "status")
	if meta, ok := m["metadata"].(map[string]any); ok {
		delete(meta, "creationTimestamp")
	}
	return yaml.Marshal(m)
}
