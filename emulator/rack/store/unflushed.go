package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"
)

// pendingValue is what the log says about a value of bbolt.
type pendingValue struct {
	value []byte // empty: the key is removed
	more  bool   // value is appended to what bbolt holds
}

// valueKey identifies a value.
type valueKey struct {
	kind Kind
	key  string
}

// remember adds a batch of the log to the values that bbolt does not have yet. It copies
// the values, because those of replay are parts of one buffer.
func (s *Store) remember(at time.Time, puts []rawPut) {
	for _, p := range puts {
		at := valueKey{p.kind, p.key}
		is := s.unflushed[at]
		switch {
		case is == nil:
			s.unflushed[at] = &pendingValue{value: bytes.Clone(p.value), more: p.more}
		case p.more:
			is.value = append(is.value, p.value...)
		default:
			is.value, is.more = bytes.Clone(p.value), false
		}
	}
	if at.After(s.last) {
		s.last = at
	}
}

// flush moves what the log holds to bbolt, and empties the log. The caller holds
// s.commit.
func (s *Store) flush() error {
	if s.log == nil {
		return fs.ErrClosed
	}
	if len(s.unflushed) == 0 && s.log.size == int64(logHead) {
		return nil
	}
	if err := s.flushTo(s.log.batch, phaseOpen); err != nil {
		return err
	}
	return s.log.empty()
}

// flushTo moves the batches of the log up to a given one to bbolt.
func (s *Store) flushTo(batch uint64, phase string) error {
	err := s.db.Update(func(tx *bbolt.Tx) error {
		for _, k := range []Kind{Meta, Hosts} {
			if _, err := tx.CreateBucketIfNotExists([]byte(k)); err != nil {
				return err
			}
		}
		if err := s.sealPlain(tx); err != nil {
			return err
		}
		meta := tx.Bucket([]byte(Meta))
		sums := digest(meta)
		for _, at := range slices.SortedFunc(maps.Keys(s.unflushed), valueKey.compare) {
			bucket := tx.Bucket([]byte(at.kind))
			if bucket == nil {
				return fmt.Errorf("%s %s: there is no such kind", at.kind, at.key)
			}
			before := sumOf(bucket.Get([]byte(at.key)))
			if err := s.unflushed[at].flush(bucket, at.key); err != nil {
				return fmt.Errorf("%s %s: %w", at.kind, at.key, err)
			}
			if at.kind == Hosts {
				sums ^= before ^ sumOf(bucket.Get([]byte(at.key)))
			}
		}
		v, err := json.Marshal(s.last)
		if err != nil {
			return err
		}
		err = errors.Join(
			put(meta, sumsKey, binary.LittleEndian.AppendUint32(nil, sums)),
			put(meta, timeKey, v),
			put(meta, batchKey, binary.AppendUvarint(nil, batch)),
			put(meta, phaseKey, []byte(phase)),
		)
		if s.marked {
			return errors.Join(err, put(meta, markKey, []byte("1")))
		}
		return errors.Join(err, meta.Delete([]byte(markKey)))
	})
	if err != nil {
		return err
	}
	clear(s.unflushed)
	return nil
}

// flush does to a key in bbolt what the log says.
func (v *pendingValue) flush(bucket *bbolt.Bucket, key string) error {
	switch {
	case v.more:
		return put(bucket, key, valueOf(bucket, key), v.value)
	case len(v.value) == 0:
		return bucket.Delete([]byte(key))
	}
	return put(bucket, key, v.value)
}

// compare orders keys as bbolt does.
func (p valueKey) compare(q valueKey) int {
	return cmp.Or(strings.Compare(string(p.kind), string(q.kind)), strings.Compare(p.key, q.key))
}

// changed returns the puts whose values the store does not hold already. A recent
// value is likely to be unflushed, which is the cheaper place to look.
func (s *Store) changed(puts []rawPut) ([]rawPut, error) {
	out := puts[:0]
	var tx *bbolt.Tx
	for _, p := range puts {
		if !p.more {
			var was []byte
			is := s.unflushed[valueKey{p.kind, p.key}]
			if is != nil {
				was = is.value
			} else {
				if tx == nil {
					var err error
					if tx, err = s.db.Begin(false); err != nil {
						return nil, err
					}
				}
				was = valueOf(tx.Bucket([]byte(p.kind)), p.key)
			}
			if (is == nil || !is.more) && bytes.Equal(was, p.value) {
				continue
			}
		}
		out = append(out, p)
	}
	if tx != nil {
		if err := tx.Rollback(); err != nil {
			return nil, err
		}
	}
	return out, nil
}
