package disk

import (
	"encoding/binary"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/sys/systest"
)

const benchSize = 128 * mib

// BenchmarkCopy is the floor: the bytes of BenchmarkWriteRaw, fetched over HTTP
// and copied to the same kind of block device by io.Copy, with and without
// computing the digest.
func BenchmarkCopy(b *testing.B) {
	s := serve(b, map[string]string{"/disk.img": string(noise(benchSize))})
	for _, a := range append([]algorithm{{name: "none"}}, algorithms...) {
		b.Run(a.name, func(b *testing.B) {
			m := systest.NewMemory(benchSize)
			b.SetBytes(benchSize)
			for b.Loop() {
				resp, err := http.Get(s.URL + "/disk.img")
				if err != nil {
					b.Fatal(err)
				}
				from := io.Reader(resp.Body)
				if a.make != nil {
					from = io.TeeReader(from, a.make())
				}
				n, err := io.Copy(io.NewOffsetWriter(m, 0), from)
				if n != benchSize || err != nil {
					b.Fatalf("io.Copy = %d, %v", n, err)
				}
				resp.Body.Close()
			}
		})
	}
}

// noise returns data that begins like no known format.
func noise(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	p := make([]byte, 0, n+8)
	for len(p) < n {
		p = binary.LittleEndian.AppendUint64(p, r.Uint64())
	}
	return p[:n]
}

func BenchmarkWriteRaw(b *testing.B) {
	image := noise(benchSize)
	for _, a := range algorithms {
		h := a.make()
		h.Write(image)
		sum := hex.EncodeToString(h.Sum(nil))
		b.Run(a.name, func(b *testing.B) { benchWrite(b, image, sum, benchSize) })
	}
}

func BenchmarkWriteQcow2(b *testing.B) {
	text := program()
	for _, bb := range []struct {
		name string
		spec qcow2Spec
	}{
		{"plain", qcow2Spec{version: 3, bits: 16}},
		{"zlib", qcow2Spec{version: 3, bits: 16, compress: true}},
		{"zstd", qcow2Spec{version: 3, bits: 16, compress: true, zstd: true}},
	} {
		file := writeQcow2(b, bb.spec, text)
		b.Run(bb.name, func(b *testing.B) { benchWrite(b, file, sha256Hex(file), benchSize) })
	}
}

// program returns data about as compressible as programs.
func program() []byte {
	text := []byte(strings.Repeat("The quick brown fox jumps over the lazy dog. ", benchSize/45+1)[:benchSize])
	random := noise(benchSize)
	for i := 0; i < len(text); i += 64 {
		copy(text[i:], random[i:i+24])
	}
	return text
}

func BenchmarkWriteSparse(b *testing.B) {
	text := program()
	for _, bb := range []struct{ format, options string }{
		{"vdi", ""}, {"vmdk", "subformat=monolithicSparse"}, {"vmdk", "subformat=streamOptimized"},
	} {
		file := qemu(b, text, bb.format, bb.options)
		b.Run(bb.format+" "+bb.options, func(b *testing.B) { benchWrite(b, file, sha256Hex(file), benchSize) })
	}
}

func benchWrite(b *testing.B, file []byte, sum string, size int64) {
	server := serve(b, map[string]string{"/disk.img": string(file)})
	s, disks := machine(systest.NewMemory(size))
	w := Writer{System: s, HTTP: http.DefaultClient}
	b.SetBytes(size)
	for b.Loop() {
		if _, err := w.Write(b.Context(), job.WriteSpec{URL: server.URL + "/disk.img", Checksum: sum, Root: firstDisk}, disks); err != nil {
			b.Fatal(err)
		}
	}
}
