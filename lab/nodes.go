package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/nodes"
	"github.com/metalab-dev/metalab/guest/node"
	"github.com/metalab-dev/metalab/guest/sandbox"
	build "github.com/metalab-dev/metalab/version"
)

// startNodes gives the embedded API what nodes need beside their kinds: the rights of node
// agents, and the lifecycle, which marks nodes whose agents have stopped.
func (l *Lab) startNodes(ctx context.Context) error {
	if !l.cfg.Settings.Kube || l.cfg.Settings.Kubeconfig != "" || !config.NeedNodes(l.cfg.Settings.Families()) {
		return nil
	}
	manifests := config.NodeAgents
	if slices.Contains(l.cfg.Settings.Families(), config.MachineConfig) {
		manifests += "\n---\n" + config.MachineConfigDaemons
	}
	run, err := l.prepareNodes(ctx, l.kube.api, manifests)
	if err == nil {
		l.run(run)
	}
	return err
}

// prepareNodes gives an API the rights of node agents, and returns the lifecycle of its nodes.
func (l *Lab) prepareNodes(ctx context.Context, api *rest.Config, manifests string) (lifecycle func(context.Context) error, err error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), rbacv1.AddToScheme(scheme), admissionv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	c, err := client.New(api, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("nodes: %w", err)
	}
	decode := serializer.NewCodecFactory(scheme).UniversalDeserializer().Decode
	for text := range strings.SplitSeq(manifests, "\n---\n") {
		o, _, err := decode([]byte(text), nil, nil)
		if err != nil {
			return nil, fmt.Errorf("rights of node agents: %w", err)
		}
		if err := c.Patch(ctx, o.(client.Object), client.Apply, client.FieldOwner("metalab"), client.ForceOwnership); err != nil { //nolint:staticcheck // Client.Apply takes no objects
			return nil, fmt.Errorf("rights of node agents: %w", err)
		}
	}
	typed, err := kubernetes.NewForConfig(api)
	if err != nil {
		return nil, fmt.Errorf("nodes: %w", err)
	}
	return (&nodes.Lifecycle{Client: typed, Timers: clientClock{l.clock}, Now: l.clock.Now, Enter: l.clock.Enter, Log: l.cfg.Log}).Run, nil
}

// runNode is the node agent. What it waits for is in the slower of lab and real time.
func runNode(ctx context.Context, y *systems, x *system, args []string) error {
	host := x.Host()
	account, err := node.ParseArgs(args, host)
	if err != nil {
		return err
	}
	return node.Run(ctx, node.Config{
		Account: account, Files: host,
		Facts: func(ctx context.Context) (node.Facts, error) { return x.nodeFacts(ctx) },
		Lost:  func() bool { return errors.Is(context.Cause(ctx), sandbox.ErrClosed) || y.ended() },
		Clock: agentClock{labClock{y.clock}}, Enter: y.clock.Enter, Log: agentLog(y.clock, y.log, x.host, x.os.Boot),
	})
}

// ended reports whether the lab has stopped. Its servers stay on until it runs again.
func (y *systems) ended() bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.stopped
}

// nodeFacts returns the facts that a server's node agent reports.
func (x *system) nodeFacts(ctx context.Context) (f node.Facts, err error) {
	hw, err := x.hardware(ctx)
	if err != nil {
		return f, err
	}
	if f.OSImage, err = node.OSImage(x.Host()); err != nil {
		return f, err
	}
	boot, err := x.Host().Boot()
	if err != nil {
		return f, err
	}
	f.Hostname, f.Arch, f.CPUs, f.MemoryBytes = hw.Hostname, hw.CPU.Arch, int64(hw.CPU.Count), int64(hw.RAMMiB)<<20
	f.BootID, f.OSTag, f.Version = boot.ID, "linux", build.Read().Version
	machineID, err := x.ReadFile(machineIDFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kubelet does without
		return f, err
	}
	f.UUID, f.MachineID = x.host.Machine().Identity.UUID, strings.TrimSpace(string(machineID))
	f.Addresses = nicAddresses(hw.NICs)
	return f, nil
}

// nicAddresses returns the addresses of NICs.
func nicAddresses(nics []job.NIC) (out []netip.Addr) {
	for _, n := range nics {
		if at, err := netip.ParseAddr(n.IP); err == nil && !slices.Contains(out, at) {
			out = append(out, at)
		}
	}
	return out
}
