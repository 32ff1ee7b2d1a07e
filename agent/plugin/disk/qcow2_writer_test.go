package disk

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// qcow2Spec describes an image for writeQcow2 (docs/interop/qcow2.rst of QEMU),
// which supports what a test of the reader needs.
type qcow2Spec struct {
	version  uint32 // 2 or 3
	bits     uint32 // log2 of the cluster size
	compress bool   // every second cluster
	zstd     bool
	zeroFlag bool // holes are marked as zero clusters instead of unallocated
}

// writeQcow2 returns an image of the disk content, whose zero clusters are holes.
func writeQcow2(t testing.TB, s qcow2Spec, content []byte) []byte {
	t.Helper()
	cluster := 1 << s.bits
	perL2 := cluster / 8
	clusters := (len(content) + cluster - 1) / cluster
	l1Entries := (clusters + perL2 - 1) / perL2
	l1Clusters := (l1Entries*8 + cluster - 1) / cluster

	// Header, L1 table, L2 tables, data. QEMU requires a table of reference
	// counts; it is empty, because readers need no counts.
	file := make([]byte, cluster*(2+l1Clusters+l1Entries))
	be := binary.BigEndian
	copy(file, "QFI\xfb")
	be.PutUint32(file[4:], s.version)
	be.PutUint32(file[20:], s.bits)
	be.PutUint64(file[24:], uint64(len(content)))
	be.PutUint32(file[36:], uint32(l1Entries))
	be.PutUint64(file[40:], uint64(2*cluster))
	be.PutUint64(file[48:], uint64(cluster))
	be.PutUint32(file[56:], 1)
	if s.version == 3 {
		be.PutUint32(file[96:], 4) // refcount order
		be.PutUint32(file[100:], 112)
		if s.zstd {
			be.PutUint64(file[72:], 1<<3)
			file[104] = 1
		}
	}
	l2 := func(i int) int { return cluster * (2 + l1Clusters + i) }
	for i := range l1Entries {
		be.PutUint64(file[2*cluster+8*i:], uint64(l2(i))|1<<63)
	}
	pack := s.packer(t)
	for i := range clusters {
		data := make([]byte, cluster)
		copy(data, content[i*cluster:])
		at := l2(i/perL2) + i%perL2*8
		switch {
		case bytes.Equal(data, make([]byte, cluster)):
			if s.zeroFlag {
				be.PutUint64(file[at:], 1)
			}
		case s.compress && i%2 == 0:
			packed := pack(data)
			off := len(file) // at any offset
			file = append(file, packed...)
			x := 62 - (s.bits - 8)
			sectors := (off+len(packed)-1)/512 - off/512
			be.PutUint64(file[at:], 1<<62|uint64(sectors)<<x|uint64(off))
			file = append(file, "slack"...)
		default:
			file = append(file, make([]byte, (cluster-len(file)%cluster)%cluster)...)
			be.PutUint64(file[at:], uint64(len(file))|1<<63)
			file = append(file, data...)
		}
	}
	return append(file, make([]byte, (cluster-len(file)%cluster)%cluster)...)
}

// packer returns a function that compresses clusters; it reuses one compressor,
// which takes a megabyte.
func (s qcow2Spec) packer(t testing.TB) func(data []byte) []byte {
	if s.zstd {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		return func(data []byte) []byte { return w.EncodeAll(data, nil) }
	}
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	return func(data []byte) []byte {
		var b bytes.Buffer
		w.Reset(&b)
		w.Write(data)
		w.Close()
		return b.Bytes()
	}
}
