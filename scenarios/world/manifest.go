package world

import (
	"bytes"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// manifest is a Secret and a BareMetalHost as people write them. It says the
// same as Objects; a rack of 10,000 servers is written in a blink, which
// marshalling as many typed objects is not.
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

// Manifest writes the objects of all servers as YAML for kubectl apply.
func Manifest(hosts []control.Host) []byte {
	var b bytes.Buffer
	for _, h := range hosts {
		fmt.Fprintf(&b, manifest, h.Name, Namespace, h.Username, h.Password, h.BootMACAddress, h.BMCAddress)
	}
	return b.Bytes()
}
