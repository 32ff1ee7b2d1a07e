package bmctest

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// The verbs of bmc.Storer.
const (
	ReadStorage   Verb = "Storage"
	CreateVolume  Verb = "CreateVolume"
	DeleteVolume  Verb = "DeleteVolume"
	PollOperation Verb = "PollOperation"
)

// Apply is when a controller carries out a request.
type Apply string

// The kinds of controllers.
const (
	AtOnce  Apply = ""
	ByJob   Apply = "job"   // as an operation that runs until Finish
	OnReset Apply = "reset" // as an operation that waits for the next start of the server
)

// Array is a Fake with a storage controller.
type Array struct {
	*Fake
	// Apply is when the controller carries out requests.
	Apply Apply
	// Break, if set, is the reason with which all operations fail.
	Break string

	controller bmc.Controller
	made       int
	operations []*operation
}

// operation is an operation with its effect.
type operation struct {
	bmc.Operation
	do func()
}

var _ bmc.Storer = (*Array)(nil)

// NewArray gives a Fake the controller "1" with drives of these sizes in bytes. A
// negative size is a rotational drive.
func NewArray(f *Fake, drives ...int64) *Array {
	a := &Array{Fake: f, controller: bmc.Controller{ID: "/c/1", Names: []string{"1", "Fake RAID"},
		Levels: []bmc.Level{bmc.Level0, bmc.Level1, bmc.Level5, bmc.Level6, bmc.Level10, bmc.Level50}}}
	for i, n := range drives {
		a.controller.Drives = append(a.controller.Drives, bmc.Drive{
			ID: "/c/1/d/" + strconv.Itoa(i), Names: []string{"Disk." + strconv.Itoa(i)}, Rotational: n < 0, Protocol: "SAS", Bytes: max(n, -n), Healthy: true,
		})
	}
	return a
}

// Open implements bmc.Open.
func (a *Array) Open(ctx context.Context, c bmc.Config) (bmc.Client, error) {
	if _, err := a.Fake.Open(ctx, c); err != nil {
		return nil, err
	}
	return a, nil
}

// FailDrive breaks a drive and degrades its volumes.
func (a *Array) FailDrive(i int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	d := &a.controller.Drives[i]
	d.Healthy = false
	for j := range a.controller.Volumes {
		if v := &a.controller.Volumes[j]; slices.Contains(v.Drives, d.ID) {
			v.Healthy = false
		}
	}
}

// ReplaceDrive puts a healthy drive of the same kind into the bay of a drive.
func (a *Array) ReplaceDrive(i int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.controller.Drives[i].Healthy = true
}

// Finish ends the running operations.
func (a *Array) Finish() { a.end(bmc.OperationRunning) }

// Restarted ends the operations that wait for a start of the server.
func (a *Array) Restarted() { a.end(bmc.OperationPending) }

func (a *Array) end(state bmc.OperationState) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.operations {
		switch {
		case w.State != state:
		case a.Break != "":
			w.State, w.Error = bmc.OperationFailed, a.Break
		default:
			w.do()
			w.State, w.Percent = bmc.OperationDone, 100
		}
	}
}

// begin starts an operation. The caller holds mu.
func (a *Array) begin(name string, do func()) bmc.Operation {
	o := bmc.Operation{ID: "/tasks/" + strconv.Itoa(len(a.operations)), Name: name, State: bmc.OperationRunning, Percent: 40}
	switch a.Apply {
	case AtOnce:
		do()
		return bmc.Operation{State: bmc.OperationDone, Percent: 100}
	case OnReset:
		o.State, o.Percent = bmc.OperationPending, 0
	}
	a.operations = append(a.operations, &operation{o, do})
	return o
}

// Storage implements bmc.Storer.
func (a *Array) Storage(ctx context.Context) (bmc.Storage, error) {
	if err := a.enter(ctx, Call{Verb: ReadStorage}); err != nil {
		return bmc.Storage{}, err
	}
	defer a.mu.Unlock()
	c := a.controller
	c.Drives, c.Volumes = slices.Clone(c.Drives), slices.Clone(c.Volumes)
	out := bmc.Storage{Controllers: []bmc.Controller{c}}
	for _, w := range a.operations {
		if w.State == bmc.OperationRunning || w.State == bmc.OperationPending {
			out.Operations = append(out.Operations, w.Operation)
		}
	}
	return out, nil
}

// Volumes returns the volumes, without failures and stalls.
func (a *Array) Volumes() []bmc.Volume {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.controller.Volumes)
}

// Add creates a volume without a request.
func (a *Array) Add(v bmc.Volume) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.add(v)
}

func (a *Array) add(v bmc.Volume) {
	a.made++
	v.ID, v.WWN = "/c/1/v/"+strconv.Itoa(a.made), fmt.Sprintf("0x6%031d", a.made)
	if v.Name == "" {
		v.Name = "Volume " + strconv.Itoa(a.made)
	}
	v.Healthy, v.Ready = true, true
	a.controller.Volumes = append(a.controller.Volumes, v)
}

// CreateVolume implements bmc.Storer. It refuses drives that have failed or belong
// to a volume.
func (a *Array) CreateVolume(ctx context.Context, v bmc.NewVolume) (bmc.Operation, error) {
	if err := a.enter(ctx, Call{Verb: CreateVolume}); err != nil {
		return bmc.Operation{}, err
	}
	defer a.mu.Unlock()
	if p := a.view().Power; p != bmc.On {
		return bmc.Operation{}, fmt.Errorf("bmctest: the controller has no power: the system is %s", p)
	}
	least := int64(1) << 62
	for _, d := range v.Drives {
		i := slices.IndexFunc(a.controller.Drives, func(x bmc.Drive) bool { return x.ID == d })
		if i < 0 || !a.controller.Drives[i].Healthy || slices.ContainsFunc(a.controller.Volumes, func(x bmc.Volume) bool { return slices.Contains(x.Drives, d) }) {
			return bmc.Operation{}, fmt.Errorf("bmctest: drive %s cannot be used", d)
		}
		least = min(least, a.controller.Drives[i].Bytes)
	}
	bytes := v.Bytes
	if bytes == 0 {
		bytes = least * map[bmc.Level]int64{
			bmc.Level0: int64(len(v.Drives)), bmc.Level1: 1, bmc.Level5: int64(len(v.Drives)) - 1, bmc.Level6: int64(len(v.Drives)) - 2,
			bmc.Level10: int64(len(v.Drives)) / 2, bmc.Level50: int64(len(v.Drives)) - 2,
		}[v.Level]
	}
	return a.begin("create", func() { a.add(bmc.Volume{Name: v.Name, Level: v.Level, Bytes: bytes, Drives: slices.Clone(v.Drives)}) }), nil
}

// DeleteVolume implements bmc.Storer.
func (a *Array) DeleteVolume(ctx context.Context, id string) (bmc.Operation, error) {
	if err := a.enter(ctx, Call{Verb: DeleteVolume}); err != nil {
		return bmc.Operation{}, err
	}
	defer a.mu.Unlock()
	return a.begin("delete", func() {
		a.controller.Volumes = slices.DeleteFunc(a.controller.Volumes, func(v bmc.Volume) bool { return v.ID == id })
	}), nil
}

// PollOperation implements bmc.Storer.
func (a *Array) PollOperation(ctx context.Context, id string) (bmc.Operation, error) {
	if err := a.enter(ctx, Call{Verb: PollOperation}); err != nil {
		return bmc.Operation{}, err
	}
	defer a.mu.Unlock()
	for _, w := range a.operations {
		if w.ID == id {
			return w.Operation, nil
		}
	}
	return bmc.Operation{ID: id, State: bmc.OperationDone, Percent: 100}, nil
}
