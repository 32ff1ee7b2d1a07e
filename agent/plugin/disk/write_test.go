package disk

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/agent/sys/systest"
)

func sha256Hex(p []byte) string {
	sum := sha256.Sum256(p)
	return hex.EncodeToString(sum[:])
}

// serve serves files by path.
func serve(t testing.TB, files map[string]string) *httptest.Server {
	etags := map[string]string{}
	for path, text := range files {
		etags[path] = `"` + sha256Hex([]byte(text)) + `"`
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("ETag", etags[r.URL.Path])
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
	}))
	t.Cleanup(s.Close)
	return s
}

// used returns a disk of size bytes that is full of old data.
func used(t testing.TB, size int64) *systest.Memory {
	m := systest.NewMemory(size)
	for off := int64(0); off < size; off += mib {
		if _, err := m.WriteAt(bytes.Repeat([]byte{0xdb}, int(min(mib, size-off))), off); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func isUntouched(t *testing.T, m *systest.Memory) bool {
	t.Helper()
	p := []byte(get(t, m, 0, int(m.Size())))
	return bytes.Equal(p, bytes.Repeat([]byte{0xdb}, len(p)))
}

// cannotBoot reports whether the disk's beginning is blank.
func cannotBoot(t *testing.T, m *systest.Memory) bool {
	t.Helper()
	return strings.Trim(get(t, m, 0, headSize), "\x00") == ""
}

var firstDisk = job.Hints{DeviceName: "/dev/sda"}

// write runs a Writer on one disk and returns its progress, too. It fails the test
// when the Writer keeps the disk, a response or a scratch file open.
func write(t *testing.T, b sys.Block, spec job.WriteSpec) (job.Written, []int, error) {
	t.Helper()
	return writeStall(t, b, spec, 0)
}

func writeStall(t *testing.T, b sys.Block, spec job.WriteSpec, stall time.Duration) (job.Written, []int, error) {
	t.Helper()
	s, disks := machine(b)
	var percents []int
	var held resources
	w := Writer{
		System: countedSystem{s, &held}, HTTP: &http.Client{Transport: &held}, Stall: stall, Pause: time.Microsecond,
		Progress: func(p int) { percents = append(percents, p) },
	}
	spec.Root = firstDisk
	got, err := w.Write(t.Context(), spec, disks)
	held.checkReleased(t)
	if again, openErr := s.OpenBlock("sda"); openErr != nil {
		t.Errorf("the disk was not closed: %v", openErr)
	} else {
		again.Close()
	}
	return got, percents, err
}

func TestWriteRaw(t *testing.T) {
	for _, size := range []int{512, 100, mib - 1, mib, mib + 1, 5*mib + 1000, 8 * mib} {
		image := content(size, uint64(size))
		image[0] = 0xeb // a jump, as at the beginning of a boot sector: never a magic number
		s := serve(t, map[string]string{"/disk.img": string(image)})
		d := &recorder{Memory: used(t, 8*mib)}
		got, percents, err := write(t, d, job.WriteSpec{URL: s.URL + "/disk.img", Format: "raw", Checksum: sha256Hex(image), ChecksumType: "sha256"})
		if err != nil {
			t.Fatalf("Write(%d bytes) = %v", size, err)
		}
		want := job.Written{Device: "/dev/sda", Bytes: int64(size), Sum: sha256Hex(image)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Write(%d bytes) (-want +got):\n%s", size, diff)
		}
		if have := get(t, d, 0, size); have != string(image) {
			t.Errorf("Write(%d bytes): the disk differs at byte %d", size, differ([]byte(have), image))
		}
		if size < 7*mib {
			if have := get(t, d, 7*mib-4, 8); have != "\xdb\xdb\xdb\xdb\x00\x00\x00\x00" {
				t.Errorf("Write(%d bytes): around the last MiB is %q, want old data and then zeros", size, have)
			}
		}
		if !slices.IsSorted(percents) || percents[0] < 0 || percents[len(percents)-1] != 100 {
			t.Errorf("Write(%d bytes): progress %v", size, percents)
		}
	}
}

func TestWriteKeepsHolesAsZeros(t *testing.T) {
	const size = 64 * mib
	image := make([]byte, size)
	copy(image, "boot")
	copy(image[30*mib:], "middle")
	s := serve(t, map[string]string{"/disk.img": string(image)})
	d := &recorder{Memory: used(t, size)}
	if _, _, err := write(t, d, job.WriteSpec{URL: s.URL + "/disk.img", Checksum: sha256Hex(image)}); err != nil {
		t.Fatal(err)
	}
	if held := d.Held(); held > 2*mib {
		t.Errorf("the disk holds %d bytes of data after an image of zeros", held)
	}
	if get(t, d, 30*mib, 6) != "middle" || get(t, d, 0, 4) != "boot" {
		t.Error("the data is not there")
	}
}

func TestWriteQcow2(t *testing.T) {
	disk := content(5*mib, 3)
	file := writeQcow2(t, qcow2Spec{version: 3, bits: 16, compress: true}, disk)
	s := serve(t, map[string]string{"/disk.qcow2": string(file)})
	for _, format := range []string{"", "qcow2"} {
		m := used(t, 8*mib)
		got, percents, err := write(t, m, job.WriteSpec{URL: s.URL + "/disk.qcow2", Format: format, Checksum: sha256Hex(file)})
		if err != nil {
			t.Fatalf("Write(format %q) = %v", format, err)
		}
		want := job.Written{Device: "/dev/sda", Bytes: 5 * mib, Sum: sha256Hex(file)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Write (-want +got):\n%s", diff)
		}
		if have := get(t, m, 0, len(disk)); have != string(disk) {
			t.Errorf("the disk differs at byte %d", differ([]byte(have), disk))
		}
		if !slices.IsSorted(percents) || percents[len(percents)-1] != 100 {
			t.Errorf("progress %v", percents)
		}
	}
}

func TestWriteRefusedBeforeTheDiskIsTouched(t *testing.T) {
	raw := string(content(2*mib, 1))
	qcow2 := string(writeQcow2(t, qcow2Spec{version: 3, bits: 16}, content(2*mib, 1)))
	large := string(writeQcow2(t, qcow2Spec{version: 3, bits: 16}, make([]byte, 9*mib)))
	files := map[string]string{
		"/raw": raw, "/qcow2": qcow2, "/large": large, "/huge": string(make([]byte, 8*mib+1)), "/empty": "",
		"/gz": "\x1f\x8b\x08 and so on", "/html": "<!DOCTYPE html><p>not found</p>", "/vmdk": "KDMV....", "/vhdx": "vhdxfile", "/text": "<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code></Error>\n",
		"/flat": "# Disk DescriptorFile\nversion=1\ncreateType=\"monolithicFlat\"\nRW 4096 FLAT \"disk-flat.vmdk\" 0\n",
		"/sums": sha256Hex([]byte(raw)) + "  other\n", "/many": strings.Repeat("# nothing\n", 200_000),
	}
	s := serve(t, files)
	sum := func(path string) string { return sha256Hex([]byte(files[path])) }
	for _, tt := range []struct {
		name string
		spec job.WriteSpec
		want string
	}{
		{"format", job.WriteSpec{URL: "/raw", Format: "vhdx", Checksum: sum("/raw")}, `format "vhdx" is not supported`},
		{"raw given as vmdk", job.WriteSpec{URL: "/raw", Format: "vmdk", Checksum: sum("/raw")}, "given as vmdk, but the file is raw"},
		{"vmdk given as raw", job.WriteSpec{URL: "/vmdk", Format: "raw", Checksum: sum("/vmdk")}, "given as raw, but the file is vmdk"},
		{"scheme", job.WriteSpec{URL: "ftp://h/raw", Checksum: sum("/raw")}, `image URL: scheme "ftp" is not supported`},
		{"file scheme", job.WriteSpec{URL: "file:///etc/passwd", Checksum: sum("/raw")}, `image URL: scheme "file"`},
		{"no host", job.WriteSpec{URL: "http:///raw", Checksum: sum("/raw")}, "image URL has no host"},
		{"no URL", job.WriteSpec{URL: "http://[secret", Checksum: sum("/raw")}, "image URL is no URL"},
		{"no checksum", job.WriteSpec{URL: "/raw", Checksum: " "}, "checksum is missing"},
		{"checksum type", job.WriteSpec{URL: "/raw", Checksum: sum("/raw"), ChecksumType: "sha1"}, `checksumType "sha1"`},
		{"checksum scheme", job.WriteSpec{URL: "/raw", Checksum: "ftp://h/sums"}, `checksum URL: scheme "ftp"`},
		{"checksum file without the name", job.WriteSpec{URL: "/raw", Checksum: "/sums"}, `/sums: checksum file does not name "raw"`},
		{"checksum file of 2 MB", job.WriteSpec{URL: "/raw", Checksum: "/many"}, "/many: more than 1048576 bytes"},
		{"no checksum file", job.WriteSpec{URL: "/raw", Checksum: "/none"}, "/none: the server answers 404 Not Found"},
		{"no image", job.WriteSpec{URL: "/none", Checksum: sum("/raw")}, "/none: the server answers 404 Not Found"},
		{"empty image", job.WriteSpec{URL: "/empty", Checksum: sum("/empty")}, "is empty"},
		{"qcow2 given as raw", job.WriteSpec{URL: "/qcow2", Format: "raw", Checksum: sum("/qcow2")}, "given as raw, but the file is qcow2"},
		{"raw given as qcow2", job.WriteSpec{URL: "/raw", Format: "qcow2", Checksum: sum("/raw")}, "given as qcow2, but the file is raw"},
		{"compressed", job.WriteSpec{URL: "/gz", Checksum: sum("/gz")}, "the image is gzip, want raw, qcow2, vdi or vmdk"},
		{"gzip given as raw", job.WriteSpec{URL: "/gz", Format: "raw", Checksum: sum("/gz")}, "the image is gzip, want raw, qcow2, vdi or vmdk"},
		{"vhdx given as raw", job.WriteSpec{URL: "/vhdx", Format: "raw", Checksum: sum("/vhdx")}, "the image is vhdx"},
		{"text", job.WriteSpec{URL: "/text", Format: "raw", Checksum: sum("/text")}, "the image is text"},
		{"error page", job.WriteSpec{URL: "/html", Checksum: sum("/html")}, "the image is HTML"},
		{"vhdx", job.WriteSpec{URL: "/vhdx", Checksum: sum("/vhdx")}, "the image is vhdx"},
		{"flat vmdk", job.WriteSpec{URL: "/flat", Checksum: sum("/flat")}, "disk: vmdk: monolithicFlat is not supported"},
		{"vmdk of a header", job.WriteSpec{URL: "/vmdk", Checksum: sum("/vmdk")}, "disk: vmdk: header"},
		{"raw larger than the disk", job.WriteSpec{URL: "/huge", Checksum: sum("/huge")}, "the image has 8388609 bytes or more, /dev/sda only 8388608"},
		{"qcow2 larger than the disk", job.WriteSpec{URL: "/large", Checksum: sum("/large")}, "the image has 9437184 bytes, /dev/sda only 8388608"},
		{"qcow2 with another checksum", job.WriteSpec{URL: "/qcow2", Checksum: sum("/raw")}, "checksum mismatch: " + s.URL + "/qcow2 has sha256 " + sum("/qcow2") + ", want " + sum("/raw")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if strings.HasPrefix(tt.spec.URL, "/") {
				tt.spec.URL = s.URL + tt.spec.URL
			}
			if strings.HasPrefix(tt.spec.Checksum, "/") {
				tt.spec.Checksum = s.URL + tt.spec.Checksum
			}
			m := used(t, 8*mib)
			_, _, err := write(t, m, tt.spec)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "disk: ") {
				t.Errorf("Write error = %v\nwant %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error tells a secret: %v", err)
			}
			if !isUntouched(t, m) {
				t.Error("the disk was written to")
			}
		})
	}
}

func TestWriteChecksumFile(t *testing.T) {
	image := string(content(mib, 1))
	files := map[string]string{
		"/a/disk.img": image,
		"/SHA256SUMS": strings.Repeat("0", 64) + "  other.img\n" + sha256Hex([]byte(image)) + " *disk.img\n",
	}
	s := serve(t, files)
	got, _, err := write(t, systest.NewMemory(mib), job.WriteSpec{URL: s.URL + "/a/disk.img?token=1", Checksum: s.URL + "/SHA256SUMS"})
	if err != nil || got.Sum != sha256Hex([]byte(image)) {
		t.Errorf("Write = %+v, %v", got, err)
	}
}

// The buffer grows with a checksum file; the wanted line may be anywhere in it.
func TestChecksumFilesOfEveryLength(t *testing.T) {
	image := content(2*mib, 1)
	line := sha256Hex(image) + "  disk.img\n"
	for _, n := range []int{0, initialBuffer - len(line) - 1, initialBuffer - len(line), initialBuffer - len(line) + 1, initialBuffer, 2 * initialBuffer, 3*initialBuffer + 7, maxSums - len(line)} {
		s := serve(t, map[string]string{"/disk.img": string(image), "/SHA256SUMS": strings.Repeat("\n", n) + line})
		if _, _, err := write(t, systest.NewMemory(4*mib), job.WriteSpec{URL: s.URL + "/disk.img", Checksum: s.URL + "/SHA256SUMS"}); err != nil {
			t.Errorf("in a file of %d bytes: %v", n+len(line), err)
		}
	}
}

func TestWriteRawMismatchLeavesADiskThatCannotBoot(t *testing.T) {
	image := content(4*mib, 1)
	s := serve(t, map[string]string{"/disk.img": string(image)})
	m := used(t, 8*mib)
	_, _, err := write(t, m, job.WriteSpec{URL: s.URL + "/disk.img", Checksum: sha256Sum})
	want := "disk: checksum mismatch: " + s.URL + "/disk.img has sha256 " + sha256Hex(image) + ", want " + sha256Sum
	if err == nil || err.Error() != want {
		t.Errorf("Write error = %v\nwant %s", err, want)
	}
	if !cannotBoot(t, m) {
		t.Error("the disk's beginning is not blank")
	}
}

// faulty is a disk with a defect.
type faulty struct {
	*systest.Memory
	forgets  bool  // loses the bytes written at failAt
	zeroless bool  // accepts Zero beyond the first MiB and does nothing
	failAt   int64 // writing here fails
	err      error
}

func (f *faulty) WriteAt(p []byte, off int64) (int, error) {
	if off <= f.failAt && f.failAt < off+int64(len(p)) {
		if f.forgets {
			return len(p), nil
		}
		if f.err != nil {
			return 0, f.err
		}
	}
	return f.Memory.WriteAt(p, off)
}

func (f *faulty) Zero(off, n int64) error {
	if f.zeroless && off > 0 && off+n < f.Size() {
		return nil
	}
	return f.Memory.Zero(off, n)
}

func TestWriteOnFaultyDisks(t *testing.T) {
	image := content(6*mib, 2)
	clear(image[3*mib : 4*mib])
	file := writeQcow2(t, qcow2Spec{version: 3, bits: 16}, image)
	s := serve(t, map[string]string{"/raw": string(image), "/qcow2": string(file)})
	for _, url := range []string{"/raw", "/qcow2"} {
		for _, tt := range []struct {
			name string
			disk faulty
			want string
		}{
			{"write error", faulty{failAt: 5 * mib, err: errors.New("input/output error")}, "disk: write /dev/sda: input/output error"},
			{"write error of the head", faulty{failAt: 0, err: errors.New("input/output error")}, "disk: write /dev/sda: input/output error"},
			{"lost write", faulty{failAt: 5*mib + 5, forgets: true}, "disk: /dev/sda holds something else than was written"},
			{"zeroing that does nothing", faulty{failAt: -1, zeroless: true}, "disk: /dev/sda holds something else than the zeros"},
		} {
			t.Run(url+" "+tt.name, func(t *testing.T) {
				tt.disk.Memory = used(t, 8*mib)
				_, _, err := write(t, &tt.disk, job.WriteSpec{URL: s.URL + url, Checksum: map[string]string{"/raw": sha256Hex(image), "/qcow2": sha256Hex(file)}[url]})
				if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
					t.Errorf("Write error = %v, want %q", err, tt.want)
				}
				if !cannotBoot(t, tt.disk.Memory) {
					t.Error("the disk's beginning is not blank")
				}
			})
		}
	}
}

func TestWriteIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("not wanted any more")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write(make([]byte, 3*mib))
		w.(http.Flusher).Flush()
		<-r.Context().Done() // the client disconnects
	}))
	defer s.Close()
	m := used(t, 8*mib)
	sys, disks := machine(m)
	w := Writer{System: sys, Progress: func(int) { cancel(why) }}
	_, err := w.Write(ctx, job.WriteSpec{URL: s.URL + "/disk.img", Checksum: sha256Sum, Root: firstDisk}, disks)
	if !errors.Is(err, why) {
		t.Errorf("Write error = %v, want %v", err, why)
	}
	if !cannotBoot(t, m) {
		t.Error("the disk's beginning is not blank")
	}
}

func TestWriteNeedsExclusiveAccess(t *testing.T) {
	s := serve(t, map[string]string{"/disk.img": "boot"})
	sys, disks := machine(systest.NewMemory(mib))
	held, err := sys.OpenBlock("sda")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	w := Writer{System: sys}
	_, err = w.Write(t.Context(), job.WriteSpec{URL: s.URL + "/disk.img", Checksum: sha256Hex([]byte("boot")), Root: firstDisk}, disks)
	if err == nil || !strings.Contains(err.Error(), "/dev/sda is in use") {
		t.Errorf("Write on a disk in use = %v", err)
	}
}

// endless never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	clear(p) // the buffer may contain another test's image
	return len(p), nil
}

func TestWriteEndlessBody(t *testing.T) {
	for _, begin := range []string{"", "QFI\xfb"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, begin)
			io.Copy(w, endless{})
		}))
		m := used(t, 8*mib)
		_, _, err := write(t, m, job.WriteSpec{URL: s.URL, Checksum: sha256Sum})
		if err == nil || !strings.Contains(err.Error(), "/dev/sda only 8388608") {
			t.Errorf("Write of an endless body that begins with %q = %v", begin, err)
		}
		if begin == "" && !cannotBoot(t, m) || begin != "" && !isUntouched(t, m) {
			t.Errorf("body that begins with %q: the disk is not as it should be", begin)
		}
		s.Close()
	}
}
