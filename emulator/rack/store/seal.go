package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"go.etcd.io/bbolt"
)

// bbolt has no checksums of its pages, so each value has one: a zero byte, which no value has, and
// four bytes of CRC-32C of key and value. checkFiles compares them when a store is opened. Values of
// earlier releases are plain.

const sealSize = 5 // bytes

// valueOf returns the value of a key; nil when it has none.
func valueOf(b *bbolt.Bucket, key string) []byte { return unseal(b.Get([]byte(key))) }

// put stores the concatenation of parts as the value of a key. bbolt keeps a reference to it until the
// commit.
func put(b *bbolt.Bucket, key string, parts ...[]byte) error {
	return b.Put([]byte(key), seal([]byte(key), parts...))
}

func seal(key []byte, parts ...[]byte) []byte {
	sum := crc32.Update(0, castagnoli, key)
	n := sealSize
	for _, p := range parts {
		sum = crc32.Update(sum, castagnoli, p)
		n += len(p)
	}
	out := slices.Grow([]byte(nil), n)
	for _, p := range parts {
		out = append(out, p...)
	}
	return binary.LittleEndian.AppendUint32(append(out, 0), sum)
}

// isSealed reports whether a stored value has a checksum.
func isSealed(stored []byte) bool {
	return len(stored) >= sealSize && stored[len(stored)-sealSize] == 0
}

// isIntact reports whether a sealed value has the right checksum.
func isIntact(key, stored []byte) bool {
	at := len(stored) - sealSize
	sum := crc32.Update(crc32.Update(0, castagnoli, key), castagnoli, stored[:at])
	return binary.LittleEndian.Uint32(stored[at+1:]) == sum
}

// unseal returns the value without its checksum.
func unseal(stored []byte) []byte {
	if isSealed(stored) {
		return stored[:len(stored)-sealSize]
	}
	return stored
}

// sumOf returns the checksum of a sealed value; 0 of none.
func sumOf(stored []byte) uint32 {
	if !isSealed(stored) {
		return 0
	}
	return binary.LittleEndian.Uint32(stored[len(stored)-4:])
}

// sumsOf returns the exclusive or of the checksums of all values of a bucket.
func sumsOf(b *bbolt.Bucket) (sums uint32, err error) {
	err = b.ForEach(func(_, stored []byte) error {
		sums ^= sumOf(stored)
		return nil
	})
	return sums, err
}

// digest returns sumsOf the hosts' values, as it is stored: pages of
// earlier transactions stay in the file, and a database that leads to one of them misses values.
func digest(meta *bbolt.Bucket) uint32 {
	if v := valueOf(meta, sumsKey); len(v) == 4 {
		return binary.LittleEndian.Uint32(v)
	}
	return 0
}

// checkDigest returns why a database misses values, or has others than were written; "" when it does
// not.
func checkDigest(tx *bbolt.Tx) (detail string, err error) {
	meta, hosts := tx.Bucket([]byte(Meta)), tx.Bucket([]byte(Hosts))
	if meta == nil && hosts == nil { // the store was just created
		return "", tx.ForEach(func(name []byte, _ *bbolt.Bucket) error {
			detail = fmt.Sprintf("it has values of a kind %q", name)
			return nil
		})
	}
	if meta == nil || hosts == nil {
		return "it has one kind of values alone", nil
	}
	if valueOf(meta, sumsKey) == nil { // of an earlier release
		return "", nil
	}
	sums, err := sumsOf(hosts)
	if sums != digest(meta) {
		detail = "values are missing, or are those of an earlier time"
	}
	return detail, err
}

// sealPlain seals the values of an earlier release, once.
func (s *Store) sealPlain(tx *bbolt.Tx) error {
	if s.plain = s.plain && valueOf(tx.Bucket([]byte(Meta)), sumsKey) == nil; !s.plain {
		return nil
	}
	for _, k := range []Kind{Meta, Hosts} {
		b := tx.Bucket([]byte(k))
		plain := map[string][]byte{}
		err := b.ForEach(func(key, stored []byte) error {
			if !isSealed(stored) {
				plain[string(key)] = stored
			}
			return nil
		})
		if err != nil {
			return err
		}
		for key, stored := range plain {
			if err := put(b, key, stored); err != nil {
				return err
			}
		}
	}
	sums, err := sumsOf(tx.Bucket([]byte(Hosts)))
	tx.OnCommit(func() { s.plain = false })
	return errors.Join(err, put(tx.Bucket([]byte(Meta)), sumsKey, binary.LittleEndian.AppendUint32(nil, sums)))
}
