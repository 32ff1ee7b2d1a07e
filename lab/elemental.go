package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/agent/elemental"
	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/netboot"
	"github.com/metalab-dev/metalab/guest/elementalsim"
	"github.com/metalab-dev/metalab/scenarios/images"
	build "github.com/metalab-dev/metalab/version"
)

// This file runs the Elemental agent in the systems of servers. Its address, CA and token come
// from the medium that the server has booted, and later from the disk: the lab tells it nothing.

// runElemental is a command of the Elemental agent.
func runElemental(ctx context.Context, y *systems, x *system, args []string) error {
	command, a, err := elemental.ParseArgs(args)
	if err != nil {
		return err
	}
	image, server := y.image(), x.host.Name()
	hardware := systemOf(x.host, x.os.Boot, "")
	plugin := elementalsim.Config{Devices: hardware, Image: image, Checksum: image + ".sha256", CompatReset: a.CompatReset}
	err = elemental.Execute(ctx, command, elemental.Config{
		System:  elementalSystem{x.Host(), func() bool { return y.trouble(server).Full }, hardware},
		Now:     func() time.Time { return time.Now().Add(y.trouble(server).Skew) },
		Version: build.Read().Version, Broker: x.broker,
		// Tokens are dated in real time, and polls take the slower of lab time and real time.
		Clock: agentClock{labClock{y.clock}}, Enter: y.clock.Enter, Log: agentLog(y.clock, y.log, x.host, x.os.Boot),
		Plugins: elemental.Makers{
			elemental.DummyPlugin: func(s elemental.System) elemental.Plugin {
				return &elemental.Dummy{System: s, CompatReset: a.CompatReset}
			},
			elemental.SimPlugin: elementalsim.New(plugin),
		},
	}, a)
	if ctx.Err() != nil { // the unit was stopped
		return nil
	}
	return err
}

// Seed returns the data with which a system registers and installs the server that it runs on:
// the address, the CA and the token of a registration, and its options of the agent.
func Seed(r *elementalv1.ElementalRegistration) (netboot.Seed, error) {
	if r.Spec.Config.Elemental.Registration.Token == "" {
		return netboot.Seed{}, fmt.Errorf("the registration %s has no token yet: its controller makes one", r.Name)
	}
	b, err := json.Marshal(r.Spec.Config.Elemental)
	if err != nil {
		return netboot.Seed{}, fmt.Errorf("registration %s: %w", r.Name, err)
	}
	var f elemental.File
	if err := json.Unmarshal(b, &f); err != nil {
		return netboot.Seed{}, fmt.Errorf("registration %s: %w", r.Name, err)
	}
	metaData, userData, err := elementalsim.SeedData(f)
	if err != nil {
		return netboot.Seed{}, fmt.Errorf("the registration %s: %w", r.Name, err)
	}
	return netboot.Seed{MetaData: metaData, UserData: userData}, nil
}

// SeedISO returns a medium with the Seed of a registration, which servers boot.
func SeedISO(r *elementalv1.ElementalRegistration) ([]byte, error) {
	seed, err := Seed(r)
	if err != nil {
		return nil, err
	}
	return images.BuildSeedISO(seed.MetaData, seed.UserData)
}

// ElementalCluster returns the objects of a cluster of Cluster API whose machines are servers that
// have registered: the first machine is of the control plane.
func ElementalCluster(name string, machines ...string) []client.Object {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: Namespace, Name: name} }
	infra := func(kind, name string) corev1.ObjectReference {
		return corev1.ObjectReference{APIVersion: elementalv1.GroupVersion.String(), Kind: kind, Namespace: Namespace, Name: name}
	}
	ref := infra("ElementalCluster", name)
	out := []client.Object{
		&elementalv1.ElementalCluster{ObjectMeta: meta(name), Spec: elementalv1.ElementalClusterSpec{ControlPlaneEndpoint: capi.APIEndpoint{Host: "127.0.0.1", Port: 6443}}},
		&capi.Cluster{ObjectMeta: meta(name), Spec: capi.ClusterSpec{InfrastructureRef: &ref}},
	}
	for i, m := range machines {
		x := &capi.Machine{ObjectMeta: meta(m), Spec: capi.MachineSpec{ClusterName: name, InfrastructureRef: infra("ElementalMachine", m)}}
		x.Labels = map[string]string{capi.ClusterNameLabel: name}
		if i == 0 {
			x.Labels[capi.MachineControlPlaneLabel] = ""
		}
		e := &elementalv1.ElementalMachine{ObjectMeta: meta(m)}
		e.Labels = map[string]string{capi.ClusterNameLabel: name}
		out = append(out, x, e)
	}
	return out
}
