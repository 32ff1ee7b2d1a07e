package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/scenarios/view"
)

// restoreFile is the file, in the state directory, with the objects that the lab's Kubernetes
// API gets at the next start. It is removed when the API has them.
const restoreFile = "restore.json"

// restored are the kinds that are restored, in the order in which they are created: the others
// have the host as their owner. The controllers make PreprovisioningImages again.
var restored = []string{"BareMetalHost", "HardwareData", "HostFirmwareSettings", "HostFirmwareComponents", "HostUpdatePolicy", "DataImage"}

// remade are the kinds that are not restored and that nobody misses.
var remade = []string{"PreprovisioningImage", "Events"}

// RestoreObjects makes the lab in a directory, which must not run, begin with the Kubernetes
// objects of a recorded lab. It returns a line for each object that cannot be restored, with
// the fix.
func RestoreObjects(dir string, r view.Recorded) (missing []string, err error) {
	if len(r.Hosts) == 0 {
		return nil, nil
	}
	for _, h := range r.Hosts {
		for _, d := range h.Objects {
			lines, err := notRestored(d)
			if err != nil {
				return nil, err
			}
			for _, line := range lines {
				if !slices.Contains(missing, line) { // several hosts may use one Secret
					missing = append(missing, line)
				}
			}
		}
	}
	return missing, writeJSON(filepath.Join(dir, restoreFile), r)
}

// notRestored returns the lines of RestoreObjects for a recorded object.
func notRestored(d view.Described) (out []string, err error) {
	switch {
	case slices.Contains(remade, d.Kind):
		return nil, nil
	case !slices.Contains(restored, d.Kind):
		return []string{fmt.Sprintf("%s %s, which uses a host: create it again, with what it belongs to", d.Kind, d.Name)}, nil
	}
	if strings.Contains(d.YAML, ":xxxxx@") || strings.Contains(d.YAML, hiddenURL) {
		out = append(out, fmt.Sprintf("the password in a URL of %s %s: set the URL before the server is provisioned the next time", d.Kind, d.Name))
	}
	if d.Kind != "BareMetalHost" {
		return out, nil
	}
	var h metal3.BareMetalHost
	if err := yaml.Unmarshal([]byte(d.YAML), &h); err != nil {
		return nil, fmt.Errorf("%s %s: %w", d.Kind, d.Name, err)
	}
	lost := func(what, namespace, name string) {
		if namespace == "" {
			namespace = h.Namespace
		}
		if name != "" {
			out = append(out, fmt.Sprintf("Secret %s/%s (%s of %s): create it again before the server is provisioned the next time", namespace, name, what, h.Name))
		}
	}
	for what, ref := range map[string]*corev1.SecretReference{"userData": h.Spec.UserData, "networkData": h.Spec.NetworkData, "metaData": h.Spec.MetaData} {
		if ref != nil {
			lost(what, ref.Namespace, ref.Name)
		}
	}
	lost("preprovisioningNetworkDataName", "", h.Spec.PreprovisioningNetworkDataName)
	if i := h.Spec.Image; i != nil && i.OCIAuthSecretName != nil {
		lost("image.ociAuthSecretName", "", *i.OCIAuthSecretName)
	}
	slices.Sort(out)
	return out, nil
}

// readRestore reads the objects that a lab begins with; nil when there are none.
func readRestore(dir string) (*view.Recorded, error) {
	name := filepath.Join(dir, restoreFile)
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var r view.Recorded
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: remove it, and the lab has no objects of the recording", name, err)
	}
	return &r, nil
}

// keepImages takes the addresses at which a recorded lab served its images, unless the lab has
// others already: objects and media name them.
func (p *ports) keepImages(r *view.Recorded) {
	if r == nil {
		return
	}
	for _, x := range []struct {
		address *string
		was     string
	}{{&p.Images, r.Images}, {&p.SecureImages, r.SecureImages}} {
		u, err := url.Parse(x.was)
		if err != nil || *x.address != anyPort {
			continue
		}
		if address, err := netip.ParseAddrPort(u.Host); err == nil && address.Addr().IsLoopback() {
			*x.address = u.Host
		}
	}
}

// startObjects creates the objects that the lab begins with, before the controllers see any.
func (l *Lab) startObjects(ctx context.Context) error {
	if !l.cfg.Settings.Kube || l.cfg.Settings.Kubeconfig != "" {
		return nil
	}
	r, err := readRestore(l.cfg.Dir)
	if err != nil || r == nil {
		return err
	}
	l.cfg.Progress("the Kubernetes objects of the recording")
	scheme, err := Scheme()
	if err != nil {
		return err
	}
	c, err := client.New(l.kube.api, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("objects: %w", err)
	}
	b := restoration{api: c, hosts: map[string]control.Host{}, made: map[types.UID]types.UID{}}
	for _, h := range l.Hosts() {
		b.hosts[h.Name] = h
	}
	name := filepath.Join(l.cfg.Dir, restoreFile)
	if err := b.create(ctx, r.Hosts); err != nil {
		return fmt.Errorf("objects of the recording: %w: remove %s to start without those that are not there yet", err, name)
	}
	if err := os.Remove(name); err != nil {
		return err
	}
	return nil
}

// restoration creates recorded objects in an API.
type restoration struct {
	api   client.Client
	hosts map[string]control.Host // the lab's hosts, by name
	made  map[types.UID]types.UID // UIDs of the created objects, by the recorded UIDs
}

// create creates the objects of hosts, kind by kind. Those that are there are left as they
// are: a start before this one has created them.
func (b *restoration) create(ctx context.Context, all []view.HostObjects) error {
	for _, kind := range restored {
		for _, h := range all {
			for _, d := range h.Objects {
				if d.Kind != kind {
					continue
				}
				if err := b.object(ctx, h.Host, d); err != nil {
					return fmt.Errorf("%s %s: %w", d.Kind, d.Name, err)
				}
			}
		}
	}
	return nil
}

// object creates an object with its status.
func (b *restoration) object(ctx context.Context, server string, d view.Described) error {
	text, err := yaml.YAMLToJSON([]byte(d.YAML))
	if err != nil {
		return err
	}
	o := new(unstructured.Unstructured)
	if err := o.UnmarshalJSON(text); err != nil {
		return err
	}
	if err := b.namespace(ctx, o.GetNamespace()); err != nil {
		return err
	}
	status, _, err := unstructured.NestedMap(o.Object, "status")
	if err != nil {
		return err
	}
	asObserved(status, o.GetGeneration())
	unstructured.RemoveNestedField(o.Object, "status")
	before, deleted := o.GetUID(), o.GetDeletionTimestamp() != nil
	b.strip(o)
	if d.Kind == "BareMetalHost" {
		if err := b.host(ctx, server, o, status); err != nil {
			return err
		}
		status = nil
	}
	want := o.DeepCopy()
	switch err := b.api.Create(ctx, o); {
	case apierrors.IsAlreadyExists(err):
		if err := b.api.Get(ctx, client.ObjectKeyFromObject(want), o); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	b.made[before] = o.GetUID()
	if len(status) > 0 {
		o.Object["status"] = status
		if err := b.api.Status().Update(ctx, o); err != nil {
			return fmt.Errorf("status: %w", err)
		}
	}
	if deleted { // its finalizer keeps it until the controllers are done
		return client.IgnoreNotFound(b.api.Delete(ctx, o))
	}
	return nil
}

// strip removes what the API sets itself, and owners that are not restored, with which the
// garbage collector would delete the object.
func (b *restoration) strip(o *unstructured.Unstructured) {
	var owners []metav1.OwnerReference
	for _, ref := range o.GetOwnerReferences() {
		if uid, ok := b.made[ref.UID]; ok {
			ref.UID = uid
			owners = append(owners, ref)
		}
	}
	o.SetOwnerReferences(owners)
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
}

// asObserved makes the conditions of a status fit an object whose generation begins at 1: those
// that were of an older generation are of none.
func asObserved(status map[string]any, generation int64) {
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		c, ok := c.(map[string]any)
		if !ok {
			continue
		}
		if at, ok := c["observedGeneration"].(int64); ok {
			c["observedGeneration"] = int64(0)
			if at == generation {
				c["observedGeneration"] = int64(1)
			}
		}
	}
}

// host completes the object of a server. Its status goes into the annotation that restores it
// (B-100), the address of the BMC is that of this lab, and the Secret with the credentials is
// made of the BMC's account.
func (b *restoration) host(ctx context.Context, server string, o *unstructured.Unstructured, status map[string]any) error {
	h, ok := b.hosts[server]
	if !ok {
		return fmt.Errorf("the lab has no server %s", server)
	}
	if len(status) > 0 {
		text, err := json.Marshal(status)
		if err != nil {
			return err
		}
		a := o.GetAnnotations()
		if a == nil {
			a = map[string]string{}
		}
		a[metal3.StatusAnnotation] = string(text)
		o.SetAnnotations(a)
	}
	var typed metal3.BareMetalHost
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &typed); err != nil {
		return err
	}
	if address := typed.Spec.BMC.Address; address != "" {
		if err := unstructured.SetNestedField(o.Object, addressOf(address, h), "spec", "bmc", "address"); err != nil {
			return err
		}
	}
	if typed.Spec.BMC.CredentialsName == "" {
		return nil
	}
	secret, _ := Objects(h)
	secret.Name, secret.Namespace = typed.Spec.BMC.CredentialsName, typed.Namespace
	if err := b.api.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("secret %s: %w", secret.Name, err)
	}
	return nil
}

// addressOf returns the address of a BMC in a BareMetalHost with the IP address and port that
// the BMC has in this lab. An address with a DNS name stays.
func addressOf(address string, h control.Host) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		scheme, rest = "", address
	}
	authority, path, slash := strings.Cut(rest, "/")
	if _, err := netip.ParseAddrPort(authority); err != nil {
		return address
	}
	now := h.IPMI // also without a scheme
	if strings.Contains(h.BMCAddress, "://") && scheme != "" && scheme != "ipmi" && scheme != "libipmi" {
		_, now, _ = strings.Cut(h.BMCAddress, "://")
		now, _, _ = strings.Cut(now, "/")
	}
	if now == "" {
		return address
	}
	out := now
	if ok {
		out = scheme + "://" + now
	}
	if slash {
		out += "/" + path
	}
	return out
}

// namespace creates a namespace that is not there.
func (b *restoration) namespace(ctx context.Context, name string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := b.api.Create(ctx, ns); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	return nil
}
