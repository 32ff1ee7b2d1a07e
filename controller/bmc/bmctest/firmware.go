package bmctest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// The verbs of bmc.Setup and bmc.Updater.
const (
	ReadBIOS       Verb = "BIOS"
	ReadPending    Verb = "PendingBIOS"
	SetBIOS        Verb = "SetBIOS"
	ReadComponents Verb = "Components"
	ReadComponent  Verb = "Component"
	Update         Verb = "Update"
	Push           Verb = "Push"
	ReadTask       Verb = "Task"
)

var firmwareVerbs = []Verb{ReadBIOS, ReadPending, SetBIOS, ReadComponents, ReadComponent, Update, Push, ReadTask}

// Firmware is the firmware of a Fake: its settings, and the components that can be
// updated. Change its fields through Fake.Firmware only.
type Firmware struct {
	Registry *bmc.AttributeRegistry
	Settings bmc.Settings
	Pending  bmc.Settings
	// Needs maps a setting to another that has to be applied before: some BIOS
	// menus unlock each other.
	Needs map[string]bmc.Settings
	// Lost lists settings that the next boot drops without applying them.
	Lost []string
	// Once refuses settings while others wait for a reset.
	Once bool
	// Messages holds the message for each setting that a reset did not apply.
	Messages map[string]string

	Components []bmc.Component
	// Images maps URLs of images to their versions. The BMC can fetch no others.
	Images map[string]string
	// Pushes makes the BMC fetch no images and accept pushed ones.
	Pushes bool
	// Breaks makes the next update fail halfway.
	Breaks bool

	tasks map[string]*work
	begun int
}

// work is a running or finished update.
type work struct {
	bmc.Task
	component, version string
	reset              bool // a boot completes it
}

var (
	_ bmc.Setup   = (*Fake)(nil)
	_ bmc.Updater = (*Fake)(nil)
	_ bmc.Setup   = (*login)(nil)
	_ bmc.Updater = (*login)(nil)
)

// Firmware changes the firmware with edit. A Fake has no firmware before the first
// call.
func (f *Fake) Firmware(edit func(*Firmware)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.firmware == nil {
		f.firmware = &Firmware{tasks: map[string]*work{}}
	}
	edit(f.firmware)
}

// Work advances updates: those of a BIOS wait for a boot, all others are complete.
func (f *Fake) Work() {
	f.Firmware(func(w *Firmware) {
		for _, t := range w.tasks { // independent of the order
			switch {
			case t.State != bmc.TaskRunning:
			case w.Breaks:
				t.Task, w.Breaks = bmc.Task{State: bmc.TaskFailed, Percent: 60, Text: "writing the image was interrupted"}, false
			case t.component == bmc.ComponentBIOS:
				t.State, t.Percent, t.reset = bmc.TaskWaiting, 90, true
			default:
				w.finish(t)
			}
		}
	})
}

func (w *Firmware) finish(t *work) {
	t.State, t.Percent = bmc.TaskDone, 100
	for i := range w.Components {
		if w.Components[i].Name == t.component {
			w.Components[i].Version = t.version
		}
	}
}

// boot applies settings and BIOS updates, as the start of the system does.
func (w *Firmware) boot() {
	for name, v := range w.Pending { // independent of the order
		if !slices.Contains(w.Lost, name) {
			w.Settings[name] = v
		}
	}
	rules := w.Registry.Rules(w.Settings)
	for _, name := range rules.Changed() {
		if v, ok := rules.Forced(name); ok {
			w.Settings[name] = v
		}
	}
	w.Pending, w.Lost = nil, nil
	for _, t := range w.tasks {
		if t.reset && t.State == bmc.TaskWaiting {
			w.finish(t)
		}
	}
}

// withFirmware calls enter for the verbs of bmc.Setup and bmc.Updater.
func (f *Fake) withFirmware(ctx context.Context, v Verb, has func(*Firmware) bool, do func(*Firmware) error) error {
	if err := f.enter(ctx, Call{Verb: v}); err != nil {
		return err
	}
	defer f.mu.Unlock()
	if f.firmware == nil || !has(f.firmware) {
		return fmt.Errorf("bmctest: %w", &bmc.UnsupportedError{Verb: string(v), Why: "it has no such firmware"})
	}
	return do(f.firmware)
}

func hasSettings(w *Firmware) bool   { return w.Settings != nil }
func hasComponents(w *Firmware) bool { return w.Components != nil }

// BIOS implements bmc.Setup.
func (f *Fake) BIOS(ctx context.Context) (b bmc.BIOS, err error) {
	err = f.withFirmware(ctx, ReadBIOS, hasSettings, func(w *Firmware) error {
		b = bmc.BIOS{Settings: maps.Clone(w.Settings), Registry: w.Registry, Failed: maps.Clone(w.Messages)}
		return nil
	})
	return b, err
}

// PendingBIOS implements bmc.Setup.
func (f *Fake) PendingBIOS(ctx context.Context) (p bmc.Settings, err error) {
	err = f.withFirmware(ctx, ReadPending, hasSettings, func(w *Firmware) error {
		p = maps.Clone(w.Pending)
		return nil
	})
	return p, err
}

// SetBIOS implements bmc.Setup. It accepts all settings or none, by the dependencies of
// the registry with the pending settings.
func (f *Fake) SetBIOS(ctx context.Context, s bmc.Settings) error {
	return f.withFirmware(ctx, SetBIOS, hasSettings, func(w *Firmware) error {
		refused := map[string]string{}
		after := maps.Clone(w.Settings)
		maps.Copy(after, w.Pending)
		maps.Copy(after, s)
		rules := w.Registry.Rules(after)
		for name := range s {
			if _, known := w.Settings[name]; !known {
				refused[name] = "there is no setting " + name
			}
			if a := rules.Attribute(name); a != nil && a.ReadOnly {
				refused[name] = name + " is read-only"
			}
			for other, v := range w.Needs[name] {
				if w.Settings[other] != v {
					refused[name] = name + " depends on " + other
				}
			}
		}
		if len(refused) > 0 {
			return fmt.Errorf("bmctest: %w", &bmc.SettingsError{Refused: refused, Err: errors.New("bad request")})
		}
		if w.Once && len(w.Pending) > 0 {
			return fmt.Errorf("bmctest: %w", bmc.ErrPending)
		}
		if w.Pending == nil {
			w.Pending = bmc.Settings{}
		}
		for name, v := range s {
			w.Pending[name] = v
			if w.Settings[name] == v {
				delete(w.Pending, name)
			}
		}
		return nil
	})
}

// Components implements bmc.Updater.
func (f *Fake) Components(ctx context.Context) (all []bmc.Component, err error) {
	err = f.withFirmware(ctx, ReadComponents, hasComponents, func(w *Firmware) error {
		for _, c := range w.Components {
			all = append(all, bmc.Component{Name: c.Name, Version: c.Version})
		}
		return nil
	})
	return all, err
}

// Component implements bmc.Updater.
func (f *Fake) Component(ctx context.Context, name string) (one bmc.Component, err error) {
	err = f.withFirmware(ctx, ReadComponent, hasComponents, func(w *Firmware) error {
		i := slices.IndexFunc(w.Components, func(c bmc.Component) bool { return c.Name == name })
		if i < 0 {
			return fmt.Errorf("bmctest: %w", &bmc.UnsupportedError{Verb: string(ReadComponent), Why: "it has no component " + name})
		}
		one = w.Components[i]
		for _, t := range w.tasks {
			one.Updating = one.Updating || t.component == name && (t.State == bmc.TaskRunning || t.State == bmc.TaskWaiting)
		}
		return nil
	})
	return one, err
}

// Update implements bmc.Updater.
func (f *Fake) Update(ctx context.Context, component, url string) (task string, err error) {
	err = f.withFirmware(ctx, Update, func(w *Firmware) bool { return hasComponents(w) && !w.Pushes }, func(w *Firmware) error {
		version, ok := w.Images[url]
		task = w.begin(component, version, ok)
		return nil
	})
	return task, err
}

// Push implements bmc.Updater. The bytes of the image are its version.
func (f *Fake) Push(ctx context.Context, component, _ string, image io.Reader, _ int64) (task string, err error) {
	version, err := io.ReadAll(image)
	if err != nil {
		return "", fmt.Errorf("bmctest: %w", err)
	}
	err = f.withFirmware(ctx, Push, hasComponents, func(w *Firmware) error {
		task = w.begin(component, string(version), true)
		return nil
	})
	return task, err
}

func (w *Firmware) begin(component, version string, ok bool) string {
	w.begun++
	id := "task-" + strconv.Itoa(w.begun)
	t := &work{Task: bmc.Task{State: bmc.TaskRunning, Percent: 10}, component: component, version: version}
	if !ok {
		t.Task = bmc.Task{State: bmc.TaskFailed, Text: "the image could not be fetched"}
	}
	w.tasks[id] = t
	return id
}

// Begun returns the number of updates that have begun.
func (f *Fake) Begun() (n int) {
	f.Firmware(func(w *Firmware) { n = w.begun })
	return n
}

// Task implements bmc.Updater.
func (f *Fake) Task(ctx context.Context, id string) (t bmc.Task, err error) {
	err = f.withFirmware(ctx, ReadTask, hasComponents, func(w *Firmware) error {
		found := w.tasks[id]
		if found == nil {
			return bmc.ErrNoTask
		}
		t = found.Task
		return nil
	})
	return t, err
}

func (l *login) BIOS(ctx context.Context) (bmc.BIOS, error) {
	if err := l.allowed(); err != nil {
		return bmc.BIOS{}, err
	}
	return l.fake.BIOS(ctx)
}

func (l *login) PendingBIOS(ctx context.Context) (bmc.Settings, error) {
	if err := l.allowed(); err != nil {
		return nil, err
	}
	return l.fake.PendingBIOS(ctx)
}

func (l *login) SetBIOS(ctx context.Context, s bmc.Settings) error {
	if err := l.allowed(); err != nil {
		return err
	}
	return l.fake.SetBIOS(ctx, s)
}

func (l *login) Components(ctx context.Context) ([]bmc.Component, error) {
	if err := l.allowed(); err != nil {
		return nil, err
	}
	return l.fake.Components(ctx)
}

func (l *login) Component(ctx context.Context, name string) (bmc.Component, error) {
	if err := l.allowed(); err != nil {
		return bmc.Component{}, err
	}
	return l.fake.Component(ctx, name)
}

func (l *login) Update(ctx context.Context, component, url string) (string, error) {
	if err := l.allowed(); err != nil {
		return "", err
	}
	return l.fake.Update(ctx, component, url)
}

func (l *login) Push(ctx context.Context, component, name string, image io.Reader, size int64) (string, error) {
	if err := l.allowed(); err != nil {
		return "", err
	}
	return l.fake.Push(ctx, component, name, image, size)
}

func (l *login) Task(ctx context.Context, id string) (bmc.Task, error) {
	if err := l.allowed(); err != nil {
		return bmc.Task{}, err
	}
	return l.fake.Task(ctx, id)
}
