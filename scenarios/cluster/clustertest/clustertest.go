// Package clustertest runs shards of a lab behind a server that stands in for the API server
// of a cluster, inside a Go test.
package clustertest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// Token is that of the shards.
const Token = "a token of this test"

// APIServer stands in for the API server of a cluster: it serves the objects of a lab, and
// its proxy removes the header Authorization, changes TLS, and adds its path, as that of
// Kubernetes does.
type APIServer struct {
	URL  string
	Labs []*racktest.Rack // racks of the shards that run

	server  *httptest.Server
	mu      sync.Mutex
	objects map[string]any // by path
	pods    map[string]*httputil.ReverseProxy
}

// Put replaces an object, by its path, and returns the one before. nil is none.
func (a *APIServer) Put(path string, o any) (was any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	was = a.objects[path]
	a.objects[path] = o
	return was
}

// ServeHTTP implements http.Handler.
func (a *APIServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer of the user" {
		http.Error(w, "who are you", http.StatusUnauthorized)
		return
	}
	r.Header.Del("Authorization")
	if pod, path, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/n/pods/https:"), ":7443/proxy"); ok && a.pods[pod] != nil {
		r.URL.Path = path
		a.pods[pod].ServeHTTP(w, r)
		return
	}
	a.mu.Lock()
	o := a.objects[r.URL.Path]
	a.mu.Unlock()
	if o == nil {
		o = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonNotFound, Code: 404, Message: r.URL.Path + " not found"}
		w.WriteHeader(http.StatusNotFound)
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(o); err != nil {
		panic(err)
	}
}

// Start starts the lab racks in the namespace n: two shards of two hosts that run, one whose
// pod is not ready, and one that was scaled in.
func Start(t *testing.T) *APIServer {
	t.Helper()
	t.Setenv("XDG_RUNTIME_DIR", "")
	a := &APIServer{objects: map[string]any{}, pods: map[string]*httputil.ReverseProxy{}}
	a.server = httptest.NewTLSServer(a)
	t.Cleanup(a.server.Close)
	a.URL = a.server.URL
	pods := corev1.PodList{}
	for i := range 3 {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("racks-%d", i)}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
		if i < 2 {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			a.Labs = append(a.Labs, a.startShard(t, pod.Name, i))
		}
		pods.Items = append(pods.Items, pod)
	}
	set := appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "racks"}, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "control", ContainerPort: 7443}}}}
	claims := corev1.PersistentVolumeClaimList{}
	for _, name := range []string{"state-racks-0", "state-racks-3", "state-other-7", "state-racks-x"} {
		claims.Items = append(claims.Items, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	a.objects["/apis/apps/v1/namespaces/n/statefulsets/racks"] = set
	a.objects["/api/v1/namespaces/n/secrets/racks"] = corev1.Secret{Data: map[string][]byte{"token": []byte(Token + "\n")}}
	a.objects["/api/v1/namespaces/n/persistentvolumeclaims"] = claims
	a.objects["/api/v1/namespaces/n/pods"] = pods
	return a
}

// Config returns the configuration of a user of the API server.
func (a *APIServer) Config() *rest.Config {
	return &rest.Config{Host: a.URL, BearerToken: "of the user", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

// Kubeconfig writes a kubeconfig of that user, and returns the name of the file.
func (a *APIServer) Kubeconfig(t *testing.T) string {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: a.URL, InsecureSkipTLSVerify: true}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: a.Config().BearerToken}
	c.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	c.CurrentContext = "x"
	name := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, name); err != nil {
		t.Fatal(err)
	}
	return name
}

// startShard starts a shard of two hosts, which the proxy reaches as a pod.
func (a *APIServer) startShard(t *testing.T, pod string, i int) *racktest.Rack {
	t.Helper()
	r := rackfile.Default(2 * (i + 1))
	r.Part = &rackfile.Part{First: 2 * i, Count: 2}
	l := racktest.Start(t, rack.Config{Rack: &r})
	remote, err := control.ListenRemote(t.Context(), l.Rack, "127.0.0.1:0", Token)
	if err != nil {
		t.Fatal(err)
	}
	s, err := control.New(control.Config{Rack: l.Rack, Remote: remote})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Serve(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	to := &url.URL{Scheme: "https", Host: remote.Listener.Addr().String()}
	a.pods[pod] = &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(to) }, Transport: a.server.Client().Transport, FlushInterval: -1}
	a.server.Client().Transport.(*http.Transport).TLSClientConfig.InsecureSkipVerify = true // as the API server does for pods
	return l
}
