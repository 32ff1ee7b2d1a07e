package images

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
)

const (
	qcowClusterBits = 16 // the default of qemu-img
	qcowCluster     = 1 << qcowClusterBits
	qcowHeaderSize  = 104 // bytes, of version 3
	// qcowMost is how many clusters one L2 table maps: 512 MiB.
	qcowMost   = qcowCluster / 8
	qcowCopied = 1 << 63 // set in L1 and L2 entries: the refcount is exactly 1
)

// The first clusters of the files; the data follows.
const (
	qcowHeader   = 0
	qcowRefTable = 1
	qcowRefBlock = 2
	qcowL1       = 3
	qcowL2       = 4
	qcowData     = 5
)

// QCOW2 returns a raw disk of up to 512 MiB as a qcow2 file of version 3 (QEMU,
// docs/interop/qcow2.txt). Clusters of zeros are not stored.
func QCOW2(raw []byte) ([]byte, error) {
	if len(raw) > qcowMost*qcowCluster || len(raw)%sectorSize != 0 {
		return nil, fmt.Errorf("qcow2 of %d bytes: want whole sectors and at most 512 MiB", len(raw))
	}
	be := binary.BigEndian
	b := make([]byte, qcowData*qcowCluster)
	zeros := make([]byte, qcowCluster)
	entry := qcowL2 * qcowCluster
	for data := range slices.Chunk(raw, qcowCluster) {
		if !bytes.Equal(data, zeros[:len(data)]) {
			be.PutUint64(b[entry:], uint64(len(b))|qcowCopied)
			b = append(b, data...)
			b = append(b, zeros[len(data):]...)
		}
		entry += 8
	}
	be.PutUint64(b[qcowL1*qcowCluster:], qcowL2*qcowCluster|qcowCopied)
	be.PutUint64(b[qcowRefTable*qcowCluster:], qcowRefBlock*qcowCluster)
	for i := range len(b) / qcowCluster {
		be.PutUint16(b[qcowRefBlock*qcowCluster+2*i:], 1)
	}
	copy(b[qcowHeader*qcowCluster:], "QFI\xfb")
	be.PutUint32(b[4:], 3) // version
	be.PutUint32(b[20:], qcowClusterBits)
	be.PutUint64(b[24:], uint64(len(raw)))
	be.PutUint32(b[36:], 1) // entries of the L1 table
	be.PutUint64(b[40:], qcowL1*qcowCluster)
	be.PutUint64(b[48:], qcowRefTable*qcowCluster)
	be.PutUint32(b[56:], 1) // clusters of the refcount table
	be.PutUint32(b[96:], 4) // refcounts of 1<<4 bits
	be.PutUint32(b[100:], qcowHeaderSize)
	return b, nil
}
