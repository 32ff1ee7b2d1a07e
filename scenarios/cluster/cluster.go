// Package cluster finds the shards of a lab that runs in a Kubernetes cluster, and reaches
// their control API through the proxy of the cluster's API server: the StatefulSet, Secret
// and volumes that the manifests in controller/config/racks make. It changes nothing.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
)

// The names in the manifests.
const (
	Namespace = "metalab-racks"
	Name      = "racks" // name of the StatefulSet and of the Secret
	Port      = "control"
	TokenKey  = "token" // in the Secret
	volume    = "state"
)

// Config says which lab is meant.
type Config struct {
	API       *rest.Config
	Namespace string
	Name      string // name of the StatefulSet and of the Secret with the token
}

// fleet holds the objects of a lab in the API server.
type fleet struct {
	c    Config
	set  *appsv1.StatefulSet
	port int32
	made int // shards that have a volume, or a pod
	pods map[string]*corev1.Pod
	to   http.RoundTripper
	auth string
	api  kubernetes.Interface
}

// Shards returns the shards of a lab in the order of their hosts, with those that have a
// volume and no pod. At least one must be up: it has the definition of the hosts.
func Shards(ctx context.Context, c Config) ([]control.Shard, error) {
	f, err := find(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("the lab %s in namespace %s: %w", c.Name, c.Namespace, err)
	}
	out := make([]control.Shard, f.made)
	for i := range out {
		out[i].Name = fmt.Sprintf("%s-%d", c.Name, i)
		out[i].Off = f.off(i)
		if out[i].Off == "" {
			if out[i].Client, err = f.client(out[i].Name); err != nil {
				return nil, err
			}
		}
	}
	r, err := definition(ctx, out)
	if err != nil {
		return nil, fmt.Errorf("the lab %s in namespace %s: %w", c.Name, c.Namespace, err)
	}
	size := r.Part.Count
	if len(r.Racks) == 0 && len(r.Hosts) == 1 { // each shard knows the hosts up to its own
		r.Hosts[0].Count = max(r.Hosts[0].Count, size*len(out))
	}
	for i := range out {
		out[i].Rack = r
		out[i].Rack.Part = &rackfile.Part{First: i * size, Count: size}
	}
	return out, nil
}

// find reads the objects of a lab.
func find(ctx context.Context, c Config) (*fleet, error) {
	config := rest.CopyConfig(c.API)
	config.NextProtos = []string{"http/1.1"} // HTTP/2 has no other protocols, such as that of consoles
	f := &fleet{c: c, pods: map[string]*corev1.Pod{}}
	var err error
	if f.api, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if f.to, err = rest.TransportFor(config); err != nil {
		return nil, err
	}
	if f.set, err = f.api.AppsV1().StatefulSets(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{}); err != nil {
		return nil, err
	}
	for _, container := range f.set.Spec.Template.Spec.Containers {
		for _, p := range container.Ports {
			if p.Name == Port {
				f.port = p.ContainerPort
			}
		}
	}
	if f.port == 0 {
		return nil, fmt.Errorf("the StatefulSet has no port %s", Port)
	}
	secret, err := f.api.CoreV1().Secrets(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if f.auth = strings.TrimSpace(string(secret.Data[TokenKey])); f.auth == "" {
		return nil, fmt.Errorf("the Secret has no %s: labctl shard secret makes one", TokenKey)
	}
	f.made = int(replicas(f.set))
	claims, err := f.api.CoreV1().PersistentVolumeClaims(c.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, claim := range claims.Items {
		if n, ok := ordinal(claim.Name, volume+"-"+c.Name+"-"); ok {
			f.made = max(f.made, n+1)
		}
	}
	pods, err := f.api.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(f.set.Spec.Selector)})
	if err != nil {
		return nil, err
	}
	for i := range pods.Items {
		f.pods[pods.Items[i].Name] = &pods.Items[i]
	}
	return f, nil
}

func replicas(s *appsv1.StatefulSet) int32 {
	if s.Spec.Replicas == nil {
		return 1 // the API's default
	}
	return *s.Spec.Replicas
}

// ordinal returns the number after a prefix.
func ordinal(name, prefix string) (int, bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	n, err := strconv.Atoi(rest)
	return n, ok && err == nil && n >= 0
}

// off returns why a shard does not run; "" when it does.
func (f *fleet) off(i int) string {
	pod := f.pods[fmt.Sprintf("%s-%d", f.c.Name, i)]
	switch {
	case i >= int(replicas(f.set)):
		return control.ScaledIn
	case pod == nil:
		return "it has no pod: kubectl describe statefulset says why"
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return ""
		}
	}
	return fmt.Sprintf("its pod is not ready (%s): kubectl describe pod says why", pod.Status.Phase)
}

// client returns a client that reaches a pod through the API server.
func (f *fleet) client(pod string) (*control.Client, error) {
	at := f.api.CoreV1().RESTClient().Get().Namespace(f.c.Namespace).Resource("pods").
		Name(fmt.Sprintf("https:%s:%d", pod, f.port)).SubResource("proxy").URL()
	return control.NewRemoteClient(control.RemoteConfig{URL: at.String(), Token: f.auth, Transport: f.to})
}

// definition returns the definition that the first shard which answers has.
func definition(ctx context.Context, shards []control.Shard) (rackfile.Lab, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		rack rackfile.Lab
		err  error
	}
	answers := make(chan answer, len(shards))
	var asked sync.WaitGroup
	for _, s := range shards {
		if s.Client == nil {
			continue
		}
		asked.Go(func() {
			r, err := s.Client.Rack(ctx)
			if err == nil && (r.Part == nil || r.Part.Count < 1) {
				err = errors.New("is no shard")
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", s.Name, err)
			}
			answers <- answer{r, err}
		})
	}
	go func() { asked.Wait(); close(answers) }()
	err := errors.New("no shard is up: kubectl get pods says why")
	for a := range answers {
		if a.err == nil {
			return a.rack, nil
		}
		err = a.err
	}
	return rackfile.Lab{}, err
}
