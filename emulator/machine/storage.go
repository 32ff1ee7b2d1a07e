package machine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

// Storage is a command to the drives, controllers and volumes of a machine.
type Storage struct{ storage.Command }

func (c Storage) apply(m *Machine, now time.Time) ([]Event, error) {
	evs, err := m.disks.Apply(now, c.Command)
	return append(m.stored(evs), m.unplugged(now, evs)...), err
}

// stored takes over what the storage has become.
func (m *Machine) stored(evs []event.Event) []Event {
	m.st.Storage = m.disks.State()
	return evs
}

// powersDisks says whether controllers have power in a phase.
func powersDisks(p Phase) bool {
	return !slices.Contains([]Phase{Off, Unplugged, Delaying, Starting, Cutting}, p)
}

// newStorage makes or restores the storage of a machine.
func (m *Machine) newStorage() error {
	s, err := storage.New(m.identity.Storage, powersDisks(m.st.Phase), m.st.Storage)
	if err != nil {
		return fmt.Errorf("machine: %s: %w", m.identity.Name, err)
	}
	m.disks = *s
	return nil
}

// restoreStorage puts the storage back to what the state is.
func (m *Machine) restoreStorage() { m.disks.Restore(powersDisks(m.st.Phase), m.st.Storage) }

// storageWorks tells whether a job is of work on drives or volumes.
func storageWorks(m *Machine, job string) bool { return m.disks.View().Works(job) }

// stopStorage gives such a job's work up, while that is possible.
func stopStorage(m *Machine, now time.Time, job string) ([]Event, error) {
	evs, err := Storage{storage.CancelTask{Task: job}}.apply(m, now)
	if errors.Is(err, storage.ErrState) {
		err = fmt.Errorf("%w: %w", ErrUnstoppable, err)
	}
	return evs, err
}
