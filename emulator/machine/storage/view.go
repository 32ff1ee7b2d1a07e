package storage

import (
	"reflect"
	"slices"
	"strconv"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// View is the storage of a server as it stands. It costs two pointers; what it
// shows is put together when it is asked for.
type View struct {
	controllers []Controller
	st          *State
}

// View returns the storage as it stands.
func (s *Subsystem) View() View { return View{controllers: s.controllers, st: s.st} }

// Same tells whether nothing has changed between two views of one server.
func (v View) Same(o View) bool { return v.st == o.st }

// Equal tells whether two views of one server show the same.
func (v View) Equal(o View) bool { return v.Same(o) || reflect.DeepEqual(v.st.all(), o.st.all()) }

// ControllerView is a controller as it stands.
type ControllerView struct {
	*Controller
	Rebuild, Check, Transform int // shares of its speed that work has, in percent
	Drives                    []DriveView
	Volumes                   []VolumeView
}

// DriveView is a drive in its bay.
type DriveView struct {
	*Model
	ID, Controller string // of the bay, and of its controller
	Bay            int    // counted from 0
	Serial, WWN    string
	State          DriveState
	Predicted      bool
	Spare          SpareKind
	For            []string // IDs of the volumes that a dedicated spare is for
	Volumes        []string // IDs of those it is part of
	Locate         bool
	Op             *Op // that is under way on it; nil: none
	unit           *Unit
	came           string // serial number of the drive that was there when the server was new
}

// SMART is what the drive tells of an attribute; false if it has none such.
func (d DriveView) SMART(a Attribute) (int64, bool) {
	if !d.has(a) {
		return 0, false
	}
	return d.unit.reading(a), true
}

// Original tells whether it is the drive that the server came with.
func (d DriveView) Original() bool { return d.Serial == d.came }

// Health is how well the drive is.
func (d DriveView) Health() event.Severity {
	switch {
	case d.State == DriveFailed:
		return event.Critical
	case d.Predicted:
		return event.Warning
	}
	return event.OK
}

// VolumeView is a volume as it stands. Its members are not to be changed.
type VolumeView struct {
	*Array
	Ops    []Op     // that are under way on it or on its drives
	Spares []string // bays of the dedicated spares
}

// Health is how well the volume is.
func (v VolumeView) Health() event.Severity {
	switch {
	case v.Failed:
		return event.Critical
	case !v.optimal():
		return event.Warning
	}
	return event.OK
}

// Degraded tells whether the volume works without some of its drives.
func (v VolumeView) Degraded() bool { return !v.Failed && !v.optimal() }

// Usable tells whether a system can read and write the volume now.
func (v VolumeView) Usable() bool {
	return !v.Failed && !slices.ContainsFunc(v.Ops, func(o Op) bool {
		return o.Saved || o.Kind == OpInitialize && v.Method == Foreground
	})
}

// Device is the name of the volume among all that the server can boot from.
func (v VolumeView) Device() string { return "Volume." + v.Controller + "." + v.ID }

// Controllers are the controllers of the server.
func (v View) Controllers() []ControllerView {
	out := make([]ControllerView, len(v.controllers))
	for i := range out {
		out[i] = v.controller(&v.controllers[i])
	}
	return out
}

// Controller finds a controller.
func (v View) Controller(id string) (ControllerView, bool) {
	for i := range v.controllers {
		if v.controllers[i].ID == id {
			return v.controller(&v.controllers[i]), true
		}
	}
	return ControllerView{}, false
}

// Drive finds the drive that is in a bay.
func (v View) Drive(bay string) (DriveView, bool) {
	for _, c := range v.Controllers() {
		for _, d := range c.Drives {
			if d.ID == bay {
				return d, true
			}
		}
	}
	return DriveView{}, false
}

// Volume finds a volume of a controller.
func (v View) Volume(controller, id string) (VolumeView, bool) {
	c, _ := v.Controller(controller)
	for _, x := range c.Volumes {
		if x.ID == id {
			return x, true
		}
	}
	return VolumeView{}, false
}

func (v View) controller(c *Controller) ControllerView {
	s := Subsystem{controllers: v.controllers}
	set := v.st.settings(c.ID)
	out := ControllerView{Controller: c, Rebuild: set.Rebuild, Check: set.Check, Transform: set.Transform}
	slots := s.slots(v.st, c)
	for _, x := range slots {
		out.Drives = append(out.Drives, v.drive(c, x))
	}
	if v.st == nil {
		return out
	}
	for i := range v.st.Arrays {
		a := &v.st.Arrays[i]
		if a.Controller != c.ID {
			continue
		}
		x := VolumeView{Array: a}
		for _, o := range v.st.Ops {
			if o.On == a.WWN || o.Kind == OpRebuild && a.index(o.On) >= 0 {
				x.Ops = append(x.Ops, o)
			}
		}
		for _, d := range slots {
			if d.unit.Spare == DedicatedSpare && slices.Contains(d.unit.For, a.WWN) {
				x.Spares = append(x.Spares, d.bay.ID)
			}
		}
		out.Volumes = append(out.Volumes, x)
	}
	slices.SortStableFunc(out.Volumes, func(a, b VolumeView) int { return number(a.ID) - number(b.ID) })
	return out
}

func number(id string) int {
	n, err := strconv.Atoi(id)
	if err != nil {
		return 0 // not reached: they are ours
	}
	return n
}

func (v View) drive(c *Controller, x slot) DriveView {
	out := DriveView{
		Model: x.model, ID: x.bay.ID, Controller: c.ID, Bay: x.bay.Bay, Serial: x.unit.Serial, WWN: x.unit.WWN,
		State: v.st.use(x.unit), Predicted: x.unit.predicted(x.model), Spare: x.unit.Spare, unit: x.unit, came: x.bay.Serial,
	}
	if v.st == nil {
		return out
	}
	for _, b := range v.st.Bays {
		if b.ID == x.bay.ID {
			out.Locate = b.Locate
		}
	}
	for i := range v.st.Arrays {
		a := &v.st.Arrays[i]
		if a.Controller != c.ID {
			continue
		}
		if slices.Contains(x.unit.For, a.WWN) {
			out.For = append(out.For, a.ID)
		}
		if a.index(x.unit.Serial) >= 0 {
			out.Volumes = append(out.Volumes, a.ID)
		}
	}
	for i := range v.st.Ops {
		if v.st.Ops[i].On == x.unit.Serial {
			out.Op = &v.st.Ops[i]
		}
	}
	return out
}

// Device is something that a system sees as a disk.
type Device struct {
	ID     string      // "Disk.0", "Volume.1.1"
	In     string      // ID of its controller
	Drive  *DriveView  // of a drive that is seen as it is
	Volume *VolumeView // of a volume
}

// Devices are what a system sees as disks, in the order in which it does:
// controller after controller, volumes first. A drive that its controller uses
// is not seen.
func (v View) Devices() []Device {
	var out []Device
	for _, c := range v.Controllers() {
		for i := range c.Volumes {
			if x := &c.Volumes[i]; x.Usable() {
				out = append(out, Device{ID: x.Device(), In: c.ID, Volume: x})
			}
		}
		for i := range c.Drives {
			d := &c.Drives[i]
			if d.State == DriveUnused && (c.RAID == nil || c.RAID.Passthrough) {
				out = append(out, Device{ID: d.ID, In: c.ID, Drive: d})
			}
		}
	}
	return out
}

// Works tells whether the work of a job is under way, or waits.
func (v View) Works(job string) bool {
	st := v.st.all()
	return job != "" && (slices.ContainsFunc(st.Ops, func(o Op) bool { return o.Task == job }) ||
		slices.ContainsFunc(st.Pending, func(p Pending) bool { return p.Task == job }))
}

// Shelf are the drives that were pulled and can be inserted again, oldest
// first. They are not to be changed.
func (v View) Shelf() []Loose { return v.st.all().Shelf }

// Size is the capacity of a drive of the server by its serial number, wherever
// it is: in a bay or on the shelf.
func (v View) Size(serial string) (int64, bool) {
	s := Subsystem{controllers: v.controllers}
	for i := range v.controllers {
		for _, x := range s.slots(v.st, &v.controllers[i]) {
			if x.unit.Serial == serial {
				return x.model.Capacity, true
			}
		}
	}
	for _, l := range v.Shelf() {
		if l.Serial == serial {
			return l.Model.Capacity, true
		}
	}
	return 0, false
}
