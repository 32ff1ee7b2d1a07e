package machine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

// Storage is a command to the machine's controllers, drives and volumes.
type Storage struct{ storage.Command }

func (c Storage) apply(m *Machine, now time.Time) ([]Event, error) {
	evs, err := m.disks.Apply(now, c.Command)
	return append(m.storageEvents(evs), m.drivesRemoved(now, evs)...), err
}

// storageEvents stores the changed storage and returns what follows from its
// events.
func (m *Machine) storageEvents(evs []event.Event) []Event {
	m.st.Storage = m.disks.State()
	return evs
}

// storagePowered reports whether the controllers have power in a phase.
func storagePowered(p Phase) bool {
	return !slices.Contains([]Phase{Off, Unplugged, Delaying, Starting, Cutting}, p)
}

// newStorage creates or restores the machine's storage.
func (m *Machine) newStorage() error {
	s, err := storage.New(m.identity.Storage, storagePowered(m.st.Phase), m.st.Storage)
	if err != nil {
		return fmt.Errorf("%s: %w", m.identity.Name, err)
	}
	m.disks = *s
	return nil
}

// restoreStorage sets the storage to the stored state.
func (m *Machine) restoreStorage() { m.disks.Restore(storagePowered(m.st.Phase), m.st.Storage) }

// storageRunsTask reports whether a task belongs to work on drives or volumes.
func storageRunsTask(m *Machine, task string) bool { return m.disks.View().Works(task) }

// stopStorageTask cancels the work of such a task while that is possible.
func stopStorageTask(m *Machine, now time.Time, task string) ([]Event, error) {
	evs, err := Storage{storage.CancelTask{Task: task}}.apply(m, now)
	if errors.Is(err, storage.ErrState) {
		err = fmt.Errorf("%w: %w", ErrUnstoppable, err)
	}
	return evs, err
}
