package disk

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/agent/sys/systest"
)

// content returns a disk of size bytes: compressible text, holes large and small,
// and noise.
func content(size int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	p := make([]byte, size)
	for off := 0; off < size; {
		n := min(size-off, 1+r.IntN(300<<10))
		switch r.IntN(3) {
		case 0: // a hole
		case 1:
			copy(p[off:off+n], bytes.Repeat([]byte("all work and no play "), n/21+1))
		default:
			for i := off; i < off+n; i += 8 {
				copy(p[i:off+n], binary.LittleEndian.AppendUint64(nil, r.Uint64()))
			}
		}
		off += n
	}
	return p
}

// unpack writes an image file to a disk of size bytes that is full of old data.
func unpack(ctx context.Context, t *testing.T, file []byte, size int64) (*systest.Memory, int64, error) {
	t.Helper()
	m := used(t, size)
	s := scratchSink{format: detect(file), target: &target{block: m, name: "/dev/sda"}, scratch: scratch{bytes.NewReader(file)}, bar: &progress{}}
	n, err := s.finish(ctx, int64(len(file)))
	if err == nil {
		err = s.verify(ctx, func(int64, int64) {})
	}
	return m, n, err
}

type scratch struct{ *bytes.Reader }

func (scratch) WriteAt([]byte, int64) (int, error) { return 0, errors.ErrUnsupported }
func (scratch) Close() error                       { return nil }

func TestQcow2(t *testing.T) {
	for bits, size := range map[uint32]int{9: mib + 1536, 12: 2*mib + 512, 16: 3*mib - 512, 21: 5*mib + 4096} {
		for _, s := range []qcow2Spec{
			{version: 2}, {version: 2, compress: true}, {version: 3, zeroFlag: true},
			{version: 3, compress: true}, {version: 3, compress: true, zstd: true},
		} {
			s.bits = bits
			t.Run(fmt.Sprintf("%+v", s), func(t *testing.T) {
				want := content(size, uint64(bits))
				m, n, err := unpack(t.Context(), t, writeQcow2(t, s, want), 8*mib)
				if err != nil || n != int64(len(want)) {
					t.Fatalf("unpack = %d, %v; want %d", n, err, len(want))
				}
				if got := get(t, m, 0, len(want)); got != string(want) {
					t.Errorf("the disk differs from the image at byte %d", differ([]byte(got), want))
				}
				if have := get(t, m, int64(len(want)), 4); have != "\xdb\xdb\xdb\xdb" {
					t.Errorf("behind the image is %q, want what was there", have)
				}
			})
		}
	}
}

func differ(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

func TestQcow2Refused(t *testing.T) {
	good := writeQcow2(t, qcow2Spec{version: 3, bits: 16, compress: true}, content(2*mib, 1))
	for _, tt := range []struct {
		name   string
		change func(p []byte) []byte
		want   string
	}{
		{"cut in the header", func(p []byte) []byte { return p[:60] }, "header"},
		{"version 1", at32(4, 1), "version 1"},
		{"version 4", at32(4, 4), "version 4"},
		{"backing file", func(p []byte) []byte {
			copy(p[4096:], "/etc/passwd")
			return at32(16, 11)(at64(8, 4096)(p))
		}, "backing file"},
		{"backing file without name", at64(8, 4096), "backing file"},
		{"external data file", at64(72, 1<<2), "external data file"},
		{"corrupt", at64(72, 1<<1), "incompatible features 0x2"},
		{"unknown feature", at64(72, 1<<40), "incompatible features 0x10000000000"},
		{"encrypted", at32(32, 2), "encrypted"},
		{"no clusters", at32(20, 0), "cluster size of 2^0"},
		{"clusters of 8 EiB", at32(20, 63), "cluster size of 2^63"},
		{"clusters of 2^4294967295", at32(20, 1<<32-1), "cluster size"},
		{"no size", at64(24, 0), "virtual size of 0"},
		{"negative size", at64(24, 1<<63), "virtual size"},
		{"size of 4 EiB", at64(24, 1<<62), "too short"},
		{"larger than the disk", at64(24, 8*mib+512), "8389120 bytes, /dev/sda only 8388608"},
		{"huge L1 table", at32(36, 1<<32-1), "L1 table of 4294967295 entries is not allowed"},
		{"large L1 table", at32(36, 1<<22), "not in the file"},
		{"no L1 table", at32(36, 0), "too short"},
		{"L1 table nowhere", at64(40, 0), "not in the file"},
		{"L1 table outside", at64(40, 1<<63), "not in the file"},
		{"L1 table in the last byte", func(p []byte) []byte { return at64(40, uint64(len(p)-1))(p) }, "not in the file"},
		{"header too short", at32(100, 72), "header of 72 bytes"},
		{"header too long", at32(100, 1<<31), "header of 2147483648 bytes"},
		{"unknown compression", func(p []byte) []byte { p[104] = 7; return at64(72, 1<<3)(p) }, "compression"},
		{"L2 table outside", at64(2*65536, 1<<50), "tables for byte 0"},
		{"cluster outside", at64(3*65536, 1<<50|1<<63), "data for byte 0"},
		{"compressed cluster outside", at64(3*65536, 1<<62|1<<50), "data for byte 0"},
		{"compressed cluster of garbage", at64(3*65536, 1<<62|8), "data for byte 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, _, err := unpack(t.Context(), t, tt.change(bytes.Clone(good)), 8*mib)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("unpack error = %v, want %q", err, tt.want)
			}
			if have := get(t, m, 0, 512); strings.Trim(have, "\x00") != "" && have != strings.Repeat("\xdb", 512) {
				t.Errorf("the disk begins with %q, want what was there or zeros", have[:16])
			}
		})
	}
}

func at(off int, text string) func([]byte) []byte {
	return func(p []byte) []byte { copy(p[off:], text); return p }
}

func at32(off int, v uint32) func([]byte) []byte {
	return at(off, string(binary.BigEndian.AppendUint32(nil, v)))
}

func at64(off int, v uint64) func([]byte) []byte {
	return at(off, string(binary.BigEndian.AppendUint64(nil, v)))
}

func TestQcow2IsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("not wanted any more")
	cancel(why)
	if _, _, err := unpack(ctx, t, writeQcow2(t, qcow2Spec{version: 3, bits: 16}, content(mib, 1)), 8*mib); !errors.Is(err, why) {
		t.Errorf("unpack error = %v, want %v", err, why)
	}
}

// FuzzQcow2 expects errors, never a panic, a hang or much memory.
func FuzzQcow2(f *testing.F) {
	disk := append(bytes.Repeat([]byte("all work and no play"), 100), make([]byte, 4096)...)
	disk = append(disk, content(1024, 1)...)
	for _, s := range []qcow2Spec{
		{version: 2, bits: 9}, {version: 2, bits: 9, compress: true}, {version: 3, bits: 10, zeroFlag: true},
		{version: 3, bits: 9, compress: true}, {version: 3, bits: 9, compress: true, zstd: true},
	} {
		f.Add(writeQcow2(f, s, disk))
	}
	f.Add(at64(72, 1<<4)(writeQcow2(f, qcow2Spec{version: 3, bits: 9}, disk))) // extended L2 tables
	f.Fuzz(func(t *testing.T, file []byte) {
		const size = 4 * mib
		m := systest.NewMemory(size)
		s := scratchSink{format: formatQcow2, target: &target{block: m, name: "/dev/sda"}, scratch: scratch{bytes.NewReader(file)}, bar: &progress{}}
		n, err := s.finish(t.Context(), int64(len(file)))
		if err == nil && (n <= 0 || n > size) {
			t.Errorf("an image of %d bytes was accepted for a disk of %d", n, size)
		}
	})
}
