package storage

import (
	"reflect"
	"slices"
	"strconv"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// View is a snapshot of a server's storage. It costs two pointers; what it
// shows is computed on demand.
type View struct {
	controllers []Controller
	st          *State
}

// View returns a snapshot of the storage.
func (s *Subsystem) View() View { return View{controllers: s.controllers, st: s.st} }

// Same reports whether nothing has changed between two views of one server.
func (v View) Same(o View) bool { return v.st == o.st }

// Equal reports whether two views of one server show the same.
func (v View) Equal(o View) bool { return v.Same(o) || reflect.DeepEqual(v.st.all(), o.st.all()) }

// ControllerView is a controller in a View.
type ControllerView struct {
	*Controller
	Rebuild, Check, Transform int // shares of its speed for work, in percent
	Drives                    []DriveView
	Volumes                   []VolumeView
}

// DriveView is a drive in a View.
type DriveView struct {
	*Model
	ID, Controller string // IDs of the bay and of its controller
	Bay            int    // counted from 0
	Serial, WWN    string
	State          DriveState
	Predicted      bool
	Spare          SpareKind
	For            []string // IDs of the volumes that a dedicated spare is for
	Volumes        []string // IDs of the volumes that it is part of
	Locate         bool
	Op             *Op // work in progress; nil: none
	unit           *Unit
	came           string // serial number of the factory drive of its bay
}

// SMART returns a SMART attribute; false when the drive does not have it.
func (d DriveView) SMART(a Attribute) (int64, bool) {
	if !d.has(a) {
		return 0, false
	}
	return d.unit.reading(a), true
}

// Original reports whether it is the factory drive.
func (d DriveView) Original() bool { return d.Serial == d.came }

// Health returns the drive's health.
func (d DriveView) Health() event.Severity {
	switch {
	case d.State == DriveFailed:
		return event.Critical
	case d.Predicted:
		return event.Warning
	}
	return event.OK
}

// VolumeView is a volume in a View. Its members must not be changed.
type VolumeView struct {
	*Array
	Ops    []Op     // in progress on it or on its drives
	Spares []string // bays of the dedicated spares
}

// Health returns the volume's health.
func (v VolumeView) Health() event.Severity {
	switch {
	case v.Failed:
		return event.Critical
	case !v.optimal():
		return event.Warning
	}
	return event.OK
}

// Degraded reports whether the volume works without some of its drives.
func (v VolumeView) Degraded() bool { return !v.Failed && !v.optimal() }

// Usable reports whether a system can use the volume now.
func (v VolumeView) Usable() bool {
	return !v.Failed && !slices.ContainsFunc(v.Ops, func(o Op) bool {
		return o.Saved || o.Kind == OpInitialize && v.Method == Foreground
	})
}

// Device returns the volume's name as a boot device.
func (v VolumeView) Device() string { return "Volume." + v.Controller + "." + v.ID }

// Controllers returns the server's controllers.
func (v View) Controllers() []ControllerView {
	out := make([]ControllerView, len(v.controllers))
	for i := range out {
		out[i] = v.controller(&v.controllers[i])
	}
	return out
}

// Controller returns a controller by ID.
func (v View) Controller(id string) (ControllerView, bool) {
	for i := range v.controllers {
		if v.controllers[i].ID == id {
			return v.controller(&v.controllers[i]), true
		}
	}
	return ControllerView{}, false
}

// Drive returns the drive in a bay.
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

// Volume returns a volume of a controller.
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
		return 0 // unreachable: IDs are numbers
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

// Device is a block device that a system sees.
type Device struct {
	ID     string      // "Disk.0", "Volume.1.1"
	In     string      // ID of its controller
	Drive  *DriveView  // a passed-through drive
	Volume *VolumeView // a volume
}

// Devices returns the block devices that a system sees, in its order: by
// controller, volumes first. Drives that a controller uses are not among them.
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

// Works reports whether the work of a task is in progress or waits.
func (v View) Works(task string) bool {
	st := v.st.all()
	return task != "" && (slices.ContainsFunc(st.Ops, func(o Op) bool { return o.Task == task }) ||
		slices.ContainsFunc(st.Pending, func(p Pending) bool { return p.Task == task }))
}

// Shelf returns the pulled drives, oldest first, which must not be changed.
func (v View) Shelf() []Loose { return v.st.all().Shelf }

// Size returns the capacity of a drive by serial number, in a bay or on the
// shelf.
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
