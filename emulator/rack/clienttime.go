package rack

import (
	"time"

	"github.com/metalab-dev/metalab/emulator/rack/store"
)

// The state of hosts has client times, such as the end of a lock, so a rack that is
// opened again must continue client time where it was. The store holds how far it
// was behind lab time: a rack that older releases have saved has no lag, and where
// client time is lab time nothing is stored at all.

// clientLagKey is the key of that lag, a time.Duration, among the values of the rack.
const clientLagKey = "clientLag"

// lagPrecision is by how much the lag may be out of date in the store. A save is
// often in the same second as the one before, and need not save it again.
const lagPrecision = time.Second

// loadClientTime continues client time.
func (l *Rack) loadClientTime() error {
	var lag time.Duration
	if _, err := l.store.Load(store.Meta, clientLagKey, &lag); err != nil {
		return err
	}
	l.storedLag.Store(int64(lag))
	l.clock.SetClientLag(lag)
	return nil
}

// save stores values with the lab's time and the lag of client time.
func (l *Rack) save(at time.Time, puts ...store.Put) error {
	lag := l.clock.ClientLag()
	if lag-time.Duration(l.storedLag.Load()) < lagPrecision {
		return l.store.Save(at, puts...)
	}
	err := l.store.Save(at, append(puts[:len(puts):len(puts)], store.Put{Kind: store.Meta, Key: clientLagKey, Value: lag})...)
	if err == nil {
		l.storedLag.Store(int64(lag))
	}
	return err
}

// faultStore is the store of the rack's faults.
type faultStore struct{ rack *Rack }

// Load implements faults.Store.
func (s faultStore) Load(k store.Kind, key string, v any) (bool, error) {
	return s.rack.store.Load(k, key, v)
}

// Save implements faults.Store.
func (s faultStore) Save(at time.Time, puts ...store.Put) error { return s.rack.save(at, puts...) }
