package kube

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalab-dev/metalab/scenarios/patience"
)

// childDir is the environment variable that makes a process of this test binary run an
// API on the folder that it names, until the process is killed.
const childDir = "METALAB_KUBE_TEST_CHILD"

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	if dir := os.Getenv(childDir); dir != "" {
		child(dir)
	}
	code := m.Run()
	if shared.api != nil {
		if err := shared.api.Stop(); err != nil {
			log.Print(err)
			code = 1
		}
	}
	_ = os.RemoveAll(shared.dir)
	for _, d := range encoded.differences {
		log.Print(d)
		code = 1
	}
	os.Exit(code)
}

// child runs an API on dir, creates a config map and then prints the path of the
// kubeconfig.
func child(dir string) {
	api, err := Start(context.Background(), Config{Dir: dir, FastPaths: FastPathsWanted()})
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.New(api.RESTConfig(), client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if err := c.Create(context.Background(), configMap("default", "written-by-child")); err != nil {
		log.Fatal(err)
	}
	fmt.Println(api.Kubeconfig())
	<-api.Done()
	log.Fatal(api.Err())
}

// shared is the API of all tests that do not stop or break it.
var shared struct {
	once sync.Once
	dir  string
	api  *API
	err  error
}

func sharedAPI(t *testing.T) *API {
	t.Helper()
	shared.once.Do(func() {
		//nolint:usetesting // the folder outlives the first test that needs it
		if shared.dir, shared.err = os.MkdirTemp("", "kube-test-"); shared.err == nil {
			shared.api, shared.err = Start(context.Background(), Config{Dir: shared.dir, FastPaths: FastPathsWanted()})
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.api
}

// start starts an API for this test alone.
func start(t *testing.T, c Config) *API {
	t.Helper()
	// Upstream may log after the test has ended, and components of another test's API may
	// log here.
	var over atomic.Bool
	t.Cleanup(func() { over.Store(true) })
	c.Log = funcr.New(func(prefix, args string) {
		if !over.Load() {
			t.Log(prefix, args)
		}
	}, funcr.Options{Verbosity: 1})
	c.FastPaths = FastPathsWanted()
	api, err := Start(context.Background(), c)
	if err != nil {
		t.Fatalf("Start(%s) error = %v, want none", c.Dir, err)
	}
	t.Cleanup(func() { stop(t, api) })
	return api
}

func stop(t *testing.T, api *API) {
	t.Helper()
	if err := api.Stop(); err != nil {
		t.Errorf("Stop() error = %v, want none", err)
	}
}

func clientFor(t *testing.T, c *rest.Config) client.Client {
	t.Helper()
	cl, err := client.New(c, client.Options{Scheme: testScheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

func testScheme(t testing.TB) *kuberuntime.Scheme {
	t.Helper()
	scheme := kuberuntime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), metal3.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// clientFrom returns a client for a kubeconfig, as kubectl reads it.
func clientFrom(t *testing.T, kubeconfig string) client.Client {
	t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return clientFor(t, c)
}

func configMap(ns, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns}, Data: map[string]string{"rack": "r1"}}
}

// freshNamespace creates a namespace for this run of the test: earlier runs may have used
// the shared API, too.
func freshNamespace(t *testing.T, c client.Client) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	create(t, c, ns)
	return ns.Name
}

func create(t *testing.T, c client.Client, objs ...client.Object) {
	t.Helper()
	for _, o := range objs {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatalf("Create(%T %s) error = %v, want none", o, o.GetName(), err)
		}
	}
}

// eventually waits until f returns true.
func eventually(t *testing.T, what string, f func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience.Limit(), true, f); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func TestRestartKeepsObjectsAndKubeconfig(t *testing.T) {
	dir := t.TempDir()
	api := start(t, Config{Dir: dir, Fsync: true})
	create(t, clientFor(t, api.RESTConfig()), configMap("default", "kept"), &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: "kept", Namespace: "default"}})
	if d := tooYoung(t, api); len(d) > 0 {
		t.Errorf("definitions younger than %s after Start, which delay the creation of objects: %q", haGrace, d)
	}
	old := filepath.Join(t.TempDir(), "kubeconfig")
	copyFile(t, api.Kubeconfig(), old)
	stop(t, api)

	// etcd stores the address of its peers, which is another one after the user has logged
	// in again.
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	start(t, Config{Dir: dir, Fsync: true})
	c := clientFrom(t, old)
	for _, o := range []client.Object{new(corev1.ConfigMap), new(metal3.BareMetalHost)} {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "kept"}, o); err != nil {
			t.Errorf("Get(%T) after a restart, with the kubeconfig from before: error = %v, want none", o, err)
		}
	}
}

// tooYoung returns the definitions that are younger than haGrace, for which upstream
// delays the creation of objects.
func tooYoung(t *testing.T, api *API) []string {
	t.Helper()
	cs, err := clientset.NewForConfig(api.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	list, err := cs.ApiextensionsV1().CustomResourceDefinitions().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, crd := range list.Items {
		c := apihelpers.FindCRDCondition(&crd, apiextensionsv1.Established)
		if c == nil || time.Since(c.LastTransitionTime.Time) < haGrace {
			names = append(names, crd.Name)
		}
	}
	return names
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestSecondStartOnAFolderReturnsErrInUse(t *testing.T) {
	sharedAPI(t)
	_, err := Start(t.Context(), Config{Dir: shared.dir, FastPaths: FastPathsWanted()})
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), shared.dir) {
		t.Errorf("Start on a folder in use: error = %v, want ErrInUse with %s", err, shared.dir)
	}
}

func TestStateSurvivesKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Errorf("child: no line that its object is stored: %v", err)
	}
	if _, err := Start(t.Context(), Config{Dir: dir, FastPaths: FastPathsWanted()}); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), fmt.Sprint(cmd.Process.Pid)) {
		t.Errorf("Start on the folder of the child: error = %v, want ErrInUse with process %d", err, cmd.Process.Pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the error is "killed"

	api := start(t, Config{Dir: dir})
	if want := strings.TrimSpace(line); api.Kubeconfig() != want {
		t.Errorf("Kubeconfig() = %s, want %s", api.Kubeconfig(), want)
	}
	got := new(corev1.ConfigMap)
	if err := clientFor(t, api.RESTConfig()).Get(t.Context(), client.ObjectKeyFromObject(configMap("default", "written-by-child")), got); err != nil {
		t.Fatalf("Get after kill -9: error = %v, want none", err)
	}
	if got.Data["rack"] != "r1" {
		t.Errorf("data after kill -9 = %v, want rack r1", got.Data)
	}
}

// cycleLabel is a label (runtime/pprof) of goroutines, which those that they start inherit.
const cycleLabel = "metalab-cycle"

// labelled returns how many goroutines have a value of cycleLabel, and their stacks.
func labelled(t *testing.T, value string) (n int, stacks string) {
	t.Helper()
	var b strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		t.Fatal(err)
	}
	for record := range strings.SplitSeq(b.String(), "\n\n") {
		if !strings.Contains(record, fmt.Sprintf("%q:%q", cycleLabel, value)) {
			continue
		}
		head := record[strings.LastIndex("\n"+record[:strings.Index(record, " @ ")], "\n"):]
		count, _, _ := strings.Cut(head, " @ ")
		same, err := strconv.Atoi(count)
		if err != nil {
			t.Fatalf("%v in %q", err, record)
		}
		n, stacks = n+same, stacks+record+"\n\n"
	}
	return n, stacks
}

func TestLabelledCountsOnlyGoroutinesOfItsValue(t *testing.T) {
	hold := make(chan struct{})
	var all sync.WaitGroup
	begin := func(value string, count int) {
		pprof.Do(t.Context(), pprof.Labels(cycleLabel, value), func(context.Context) {
			for range count {
				ready := make(chan struct{})
				all.Go(func() {
					all.Go(func() { close(ready); <-hold }) // it inherits the label
					<-hold
				})
				<-ready
			}
		})
	}
	begin("these", 3)
	begin("others", 60)
	if n, stacks := labelled(t, "these"); n != 6 {
		t.Errorf("labelled() = %d, want 6\n%s", n, stacks)
	}
	close(hold)
	all.Wait()
	eventually(t, "no labelled goroutine is left", func(context.Context) (bool, error) {
		n, _ := labelled(t, "these")
		return n == 0, nil
	})
}

// Two APIs, one with nodes, start and stop at the same time, while another one runs in the same process.
// That one starts and ends goroutines meanwhile, more of them while it is new: only those that the
// two have started count. What the process starts once is started by the first two.
func TestStopEndsEveryGoroutine(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir()}
	const few = 50 // one API is some 1500 goroutines
	cycle := func(name string) {
		pprof.Do(t.Context(), pprof.Labels(cycleLabel, name), func(ctx context.Context) {
			var all sync.WaitGroup
			for i, dir := range dirs {
				all.Go(func() {
					api, err := Start(ctx, Config{Dir: dir, FastPaths: FastPathsWanted(), Nodes: i == 0})
					if err != nil {
						t.Errorf("Start() error = %v, want none", err)
						return
					}
					if n, _ := labelled(t, name); n <= few {
						t.Errorf("a running API has %d goroutines with the label, want more than %d: its leaks would not be seen", n, few)
					}
					stop(t, api)
				})
			}
			all.Wait()
		})
	}
	sharedAPI(t)
	cycle("first")
	cycle("second")
	// Connections and timers take a moment to end.
	stacks := ""
	err := patience.Until(t.Context(), patience.Limit(), func(context.Context) (done bool, saw string, err error) {
		var left int
		left, stacks = labelled(t, "second")
		return left <= few, fmt.Sprintf("%d goroutines", left), nil
	})
	if err != nil {
		t.Errorf("goroutines that the second start of two APIs has left: %v\n%s", err, stacks)
	}
}

func TestStopEndsWithOpenWatch(t *testing.T) {
	t.Parallel()
	api := start(t, Config{Dir: t.TempDir()})
	c, err := client.NewWithWatch(api.RESTConfig(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := c.Watch(t.Context(), new(corev1.ConfigMapList))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	begin := time.Now()
	stop(t, api)
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("Stop() with an open watch took %s, want less than the minute without watchGrace", took)
	}
	select {
	case <-api.Done():
	default:
		t.Error("Done() is open after Stop")
	}
}

func TestAPIStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	api, err := Start(ctx, Config{Dir: t.TempDir(), FastPaths: FastPathsWanted()})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-api.Done()
	if err := api.Err(); err != nil {
		t.Errorf("Err() after the end of the context = %v, want nil", err)
	}
}

// After its context has ended, Start must return, must not let upstream exit the process,
// and must release the folder.
func TestStartReturnsWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, Config{Dir: dir, FastPaths: FastPathsWanted()}); !errors.Is(err, context.Canceled) {
		t.Errorf("Start() with an ended context: error = %v, want context.Canceled", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 1200*time.Millisecond) // while the start hooks run
	defer cancel()
	if _, err := Start(ctx, Config{Dir: dir, FastPaths: FastPathsWanted()}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Start() with a context that ends meanwhile: error = %v, want context.DeadlineExceeded", err)
	}
	start(t, Config{Dir: dir})
}

func TestErrReturnsTheServersFailure(t *testing.T) {
	t.Parallel()
	api, err := Start(t.Context(), Config{Dir: t.TempDir(), FastPaths: FastPathsWanted()})
	if err != nil {
		t.Fatal(err)
	}
	api.server.cancel() // as if the server had failed
	<-api.Done()
	if err := api.Err(); err == nil || err.Error() != "API server stopped unexpectedly" {
		t.Errorf("Err() = %v, want API server stopped unexpectedly", err)
	}
	if got, want := api.Stop(), api.Err(); !errors.Is(got, want) {
		t.Errorf("Stop() after that = %v, want the same %v", got, want)
	}
}
