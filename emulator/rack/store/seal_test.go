package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"go.etcd.io/bbolt"
)

// contentOf returns all values of a store.
func contentOf(t *testing.T, s *Store) string {
	t.Helper()
	var out bytes.Buffer
	for _, k := range []Kind{Hosts} {
		err := s.Each(k, func(key string, value []byte) error {
			fmt.Fprintf(&out, "%s %s=%s\n", k, key, value)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	return out.String()
}

// Whatever byte of a database changes, whether its store was closed or killed, the store has the same
// values as before, or it is refused with the file's name.
func TestChangedByteIsNoticed(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *Store){"closed": closed, "killed": killed} {
		t.Run(name, func(t *testing.T) {
			files := filesOf(t, filled(t, end))
			whole := files[file]
			s := newStore(t, Config{Dir: copyOf(t, files)})
			want := contentOf(t, s)
			closed(t, s)
			random := rand.New(rand.NewPCG(1, 2))
			refused := 0
			for range 200 {
				at, bit := random.IntN(len(whole)), byte(1)<<random.IntN(8)
				files[file] = bytes.Clone(whole)
				files[file][at] ^= bit
				s, err := Open(Config{Dir: copyOf(t, files), Fsync: true})
				var damage *DamageError
				switch {
				case errors.As(err, &damage) && damage.Fix != "":
					refused++
				case err != nil:
					t.Errorf("byte %d, bit %d: Open() = %v, want a DamageError", at, bit, err)
				default:
					if got := contentOf(t, s); got != want {
						t.Errorf("byte %d, bit %d: the store has other values", at, bit)
					}
					closed(t, s)
				}
			}
			if refused < 50 {
				t.Errorf("%d of 200 changes were refused", refused)
			}
		})
	}
}

// A value whose mark of a checksum has changed is no value of an earlier release, since others have
// theirs.
func TestValueWithoutItsChecksum(t *testing.T) {
	files := filesOf(t, filled(t, closed))
	whole := files[file]
	refused := 0
	for from, sealed := 0, []byte("xxx\"\x00"); ; {
		i := bytes.Index(whole[from:], sealed)
		if i < 0 {
			break
		}
		from += i + len(sealed)
		files[file] = bytes.Clone(whole)
		files[file][from-1] = 1
		s, err := Open(Config{Dir: copyOf(t, files)})
		var damage *DamageError
		if errors.As(err, &damage) && damage.Offset > 0 {
			refused++
		} else if err != nil {
			t.Error(err)
		} else { // a page of an earlier transaction
			closed(t, s)
		}
		if refused > 3 {
			return
		}
	}
	t.Errorf("%d values were refused", refused)
}

// A database that leads to a page of an earlier transaction, whose values are intact, is refused.
func TestValuesOfAnEarlierTime(t *testing.T) {
	for what, change := range map[string]func(*bbolt.Tx) error{
		"a value less":     func(tx *bbolt.Tx) error { return tx.Bucket([]byte(Hosts)).Delete([]byte("node-7/bmc")) },
		"an earlier value": func(tx *bbolt.Tx) error { return put(tx.Bucket([]byte(Hosts)), "node-7/bmc", []byte(`"earlier"`)) },
		"no hosts":         func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte(Hosts)) },
		"another kind": func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucket([]byte("hosu"))
			return errors.Join(err, tx.DeleteBucket([]byte(Meta)), tx.DeleteBucket([]byte(Hosts)))
		},
	} {
		dir := filled(t, closed)
		db, err := open(dir, &bbolt.Options{NoFreelistSync: true})
		if err == nil {
			err = errors.Join(db.Update(change), db.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		var damage *DamageError
		if _, err := Open(Config{Dir: dir}); !errors.As(err, &damage) {
			t.Errorf("%s: Open() = %v, want a DamageError", what, err)
		}
	}
}

// The values of an earlier release, which have no checksums, get them when its store is opened.
func TestPlainValuesAreSealed(t *testing.T) {
	dir := filled(t, closed)
	s := newStore(t, Config{Dir: dir})
	want := contentOf(t, s)
	closed(t, s)
	db, err := open(dir, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, k := range []Kind{Meta, Hosts} {
			b := tx.Bucket([]byte(k))
			plain := map[string][]byte{}
			_ = b.ForEach(func(key, stored []byte) error {
				plain[string(key)] = bytes.Clone(unseal(stored))
				return nil
			})
			delete(plain, sumsKey)
			_ = b.Delete([]byte(sumsKey))
			for key, v := range plain {
				if err := b.Put([]byte(key), v); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	s = newStore(t, Config{Dir: dir})
	if got := contentOf(t, s); got != want {
		t.Error("the store has other values")
	}
	err = s.db.View(func(tx *bbolt.Tx) error {
		for _, k := range []Kind{Meta, Hosts} {
			err := tx.Bucket([]byte(k)).ForEach(func(key, stored []byte) error {
				if !isSealed(stored) || !isIntact(key, stored) {
					return fmt.Errorf("%s %s has no checksum: %q", k, key, stored)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	closed(t, s)
}
