package kube

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"runtime/debug"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// etcd's database has no checksums: a byte of an object that changes is served as it is. Its
// write-ahead log has, and holds each object as it was written, until etcd removes its first file.

// logged are the changes that a write-ahead log holds.
type logged struct {
	last  uint64              // index of the last entry
	whole bool                // the log holds all changes that there ever were
	puts  map[uint64]struct{} // hashes of keys with their values
	seed  maphash.Seed
}

func newLogged(last uint64, whole bool) *logged {
	return &logged{last: last, whole: whole, puts: map[uint64]struct{}{}, seed: maphash.MakeSeed()}
}

func (l *logged) hash(key, value []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(l.seed)
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(key)))
	_, _ = h.Write(n[:])
	_, _ = h.Write(key)
	_, _ = h.Write(value)
	return h.Sum64()
}

// add adds what an entry writes, whether or not its condition held.
func (l *logged) add(e *raftpb.Entry) error {
	l.last = e.GetIndex()
	if e.GetType() != raftpb.EntryNormal || len(e.Data) == 0 {
		return nil
	}
	var r etcdserverpb.InternalRaftRequest
	if err := proto.Unmarshal(e.Data, &r); err != nil {
		return fmt.Errorf("entry %d: %w", e.GetIndex(), err)
	}
	if p := r.GetPut(); p != nil {
		l.put(p)
	}
	l.txn(r.GetTxn())
	return nil
}

func (l *logged) put(p *etcdserverpb.PutRequest) {
	l.puts[l.hash(p.GetKey(), p.GetValue())] = struct{}{}
}

func (l *logged) txn(t *etcdserverpb.TxnRequest) {
	for _, ops := range [][]*etcdserverpb.RequestOp{t.GetSuccess(), t.GetFailure()} {
		for _, op := range ops {
			if p := op.GetRequestPut(); p != nil {
				l.put(p)
			}
			if nested := op.GetRequestTxn(); nested != nil {
				l.txn(nested)
			}
		}
	}
}

// checkContent compares the objects of a database with the changes that the log holds, and returns
// an error that names the first one which differs. It returns the index of the last entry that the
// database has.
func checkContent(tx *bbolt.Tx, l *logged) (applied uint64, err error) {
	// A page that points out of the file is a fault of the memory that the file is mapped to.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	var compacted int64
	if meta := tx.Bucket([]byte("meta")); meta != nil {
		if v := meta.Get([]byte("consistent_index")); len(v) == 8 {
			applied = binary.BigEndian.Uint64(v)
		}
		if v := meta.Get([]byte("scheduledCompactRev")); len(v) == 17 {
			compacted = mvcc.BytesToRev(v).Main
		}
	}
	if applied > l.last { // the log was cut off
		return applied, nil
	}
	err = tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
		c := contentCheck{log: l, compacted: compacted, objects: string(name) == "key"}
		return b.ForEach(c.next)
	})
	for problem := range tx.Check() { // to its end: it holds the transaction
		err = errors.Join(err, problem)
	}
	return applied, err
}

// contentCheck checks the values of a bucket in the order of their keys: in "key" those are
// revisions (mvcc.BucketKey), and the values objects.
type contentCheck struct {
	log       *logged
	compacted int64 // revision up to which some may be gone
	objects   bool
	before    []byte
	revision  int64
}

func (c *contentCheck) next(k, v []byte) error {
	if c.before != nil && bytes.Compare(c.before, k) >= 0 {
		return fmt.Errorf("has the key %q after %q", k, c.before)
	}
	c.before = bytes.Clone(k)
	if !c.objects {
		return nil
	}
	var kv mvccpb.KeyValue
	if err := proto.Unmarshal(v, &kv); err != nil {
		return fmt.Errorf("has an object that cannot be read at revision %x: %w", k, err)
	}
	revision := mvcc.BytesToRev(k).Main
	switch {
	case revision > c.compacted+1 && c.revision > 0 && revision > c.revision+1:
		return fmt.Errorf("lacks revision %d", c.revision+1)
	case mvcc.IsTombstone(k):
	case kv.GetModRevision() != revision:
		return fmt.Errorf("has %s with another revision than it was written with", kv.GetKey())
	default:
		if _, found := c.log.puts[c.log.hash(kv.GetKey(), kv.GetValue())]; c.log.whole && !found {
			return fmt.Errorf("has %s with another name or value than was written", kv.GetKey())
		}
	}
	c.revision = revision
	return nil
}
