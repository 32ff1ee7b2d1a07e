package lab

import (
	"bytes"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalab-dev/metalab/emulator/rack/control"
)

// HostsFile is the name, in the state directory, of the manifest of all servers.
const HostsFile = "hosts.yaml"

// Namespace is the namespace of the lab's objects.
const Namespace = "default"

// Objects returns the Secret with a server's BMC credentials and its BareMetalHost,
// without an image.
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

// manifest is the YAML of the objects that Objects returns. To format it for 10,000 servers
// takes far less time than to marshal as many typed objects.
const manifest = `---
apiVersion: v1
kind: Secret
metadata:
  name: %[1]s-bmc
  namespace: %[2]s
type: Opaque
stringData:
  username: %[3]q
  password: %[4]q
---
apiVersion: metal3.io/v1alpha1
kind: BareMetalHost
metadata:
  name: %[1]s
  namespace: %[2]s
spec:
  online: true
  bootMACAddress: %[5]q
  bmc:
    address: %[6]s
    credentialsName: %[1]s-bmc
`

// Manifest returns the objects of all servers as YAML for kubectl apply.
func Manifest(hosts []control.Host) []byte {
	var b bytes.Buffer
	for _, h := range hosts {
		fmt.Fprintf(&b, manifest, h.Name, Namespace, h.Username, h.Password, h.BootMACAddress, h.BMCAddress)
	}
	return b.Bytes()
}
