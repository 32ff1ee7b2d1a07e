package ramdisk

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"debug/pe"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/agent/boot"
	"github.com/metalab-dev/metalab/controller/netboot"
	"github.com/metalab-dev/metalab/controller/netboot/cpio"
	"github.com/metalab-dev/metalab/controller/netboot/stub"
)

// deb makes a package that installs files.
func deb(t testing.TB, files map[string][]byte) string {
	t.Helper()
	var data bytes.Buffer
	z := gzip.NewWriter(&data)
	w := tar.NewWriter(z)
	for name, b := range files {
		if err := w.WriteHeader(&tar.Header{Name: "." + name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(b))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	out := []byte(arMagic)
	for _, m := range []struct {
		name string
		b    []byte
	}{{"debian-binary", []byte("2.0\n")}, {"odd", []byte("x")}, {"data.tar.gz", data.Bytes()}} {
		out = fmt.Appendf(out, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", m.name, 0, 0, 0, "100644", len(m.b))
		if out = append(out, m.b...); len(m.b)%2 != 0 {
			out = append(out, '\n')
		}
	}
	name := filepath.Join(t.TempDir(), "a.deb")
	if err := os.WriteFile(name, out, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// driver returns an ELF file with these lines in .modinfo, as a kernel module has.
func driver(lines ...string) []byte {
	const header, sections = 64, 3
	text := strings.Join(lines, "\x00") + "\x00"
	names := "\x00.modinfo\x00.shstrtab\x00"
	le := binary.LittleEndian
	b := make([]byte, header+sections*64)
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[16:], 1)  // relocatable
	le.PutUint16(b[18:], 62) // x86-64
	le.PutUint32(b[20:], 1)
	le.PutUint64(b[40:], header)
	le.PutUint16(b[52:], header)
	le.PutUint16(b[58:], 64)
	le.PutUint16(b[60:], sections)
	le.PutUint16(b[62:], 2)
	for i, s := range []struct {
		name, kind int
		content    string
	}{{1, 1, text}, {10, 3, names}} {
		at := b[header+(i+1)*64:]
		le.PutUint32(at[0:], uint32(s.name))
		le.PutUint32(at[4:], uint32(s.kind))
		le.PutUint64(at[24:], uint64(len(b)))
		le.PutUint64(at[32:], uint64(len(s.content)))
		b = append(b, s.content...)
	}
	return b
}

func TestDriversAreChosenWithWhatTheyNeed(t *testing.T) {
	all := map[string]module{}
	for place, b := range map[string][]byte{
		"drivers/net/virtio_net.ko":       driver("alias=virtio:d1v*", "depends=net_failover,virtio", "license=GPL"),
		"net/core/net-failover.ko":        driver("depends="),
		"drivers/virtio/virtio.ko":        driver("softdep=pre: crc32c post: other"),
		"lib/crc32c.ko":                   driver("alias=crypto-crc32c"),
		"sound/beep.ko":                   driver("alias=pci:v1"),
		"drivers/net/wireless/iwlwifi.ko": driver("alias=pci:v2"),
	} {
		name, m, err := parseModule(place, b)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = m
	}
	want := boot.Index{
		"virtio_net": {Aliases: []string{"virtio:d1v*"}, Needs: []string{"net_failover", "virtio"}}, "net_failover": {},
		"virtio": {Needs: []string{"crc32c"}}, "crc32c": {Aliases: []string{"crypto-crc32c"}},
	}
	if d := cmp.Diff(want, choose(all)); d != "" {
		t.Errorf("chosen (-want +got):\n%s", d)
	}
	if _, _, err := parseModule("x.ko", []byte("no ELF")); err == nil {
		t.Error("parseModule(no ELF) = nil error")
	}
}

func TestUnifiedKernelHasItsParts(t *testing.T) {
	kernel, initrd := []byte("the kernel"), bytes.Repeat([]byte("initrd"), 1000)
	b, err := unified(stub.EFI("a stub"), kernel, initrd, "a=b")
	if err != nil {
		t.Fatal(err)
	}
	f, err := pe.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	end := uint32(0)
	for _, s := range f.Sections {
		if s.VirtualAddress < end || s.VirtualAddress%0x200 != 0 || s.Offset%0x200 != 0 {
			t.Errorf("section %s at %#x, in the file at %#x: overlaps, or is not aligned", s.Name, s.VirtualAddress, s.Offset)
		}
		end = s.VirtualAddress + s.VirtualSize
	}
	for name, want := range map[string]string{".cmdline": "a=b\x00", ".linux": string(kernel), ".initrd": string(initrd)} {
		s := f.Section(name)
		if s == nil {
			t.Fatalf("no section %s", name)
		}
		data, err := s.Data()
		if err != nil || string(data[:s.VirtualSize]) != want {
			t.Errorf("%s = %d bytes, %v: want %d", name, len(data), err, len(want))
		}
	}
	if size := f.OptionalHeader.(*pe.OptionalHeader64).SizeOfImage; size < end {
		t.Errorf("size of the image %#x, and sections end at %#x", size, end)
	}
	for _, bad := range [][]byte{nil, []byte("MZ"), kernel} {
		if _, err := unified(bad, kernel, initrd, ""); !errors.Is(err, errStub) {
			t.Errorf("unified(%q) = %v, want %v", bad, err, errStub)
		}
	}
}

func TestImageIsMadeOfPackages(t *testing.T) {
	self, err := os.Executable() // any program; a test's is linked statically where cgo is off
	if err != nil {
		t.Fatal(err)
	}
	agent := filepath.Join(t.TempDir(), "lab-agent")
	static := make([]byte, 64) // an ELF file without segments
	copy(static, "\x7fELF\x02\x01\x01")
	static[16], static[18], static[20], static[52] = byte(elf.ET_EXEC), byte(elf.EM_X86_64), 1, 64
	if err := os.WriteFile(agent, static, 0o700); err != nil {
		t.Fatal(err)
	}
	linux := deb(t, map[string][]byte{
		"/boot/vmlinuz-6.1.0-test":                                 bytes.Repeat([]byte("kernel"), 2000),
		"/lib/modules/6.1.0-test/kernel/drivers/net/virtio_net.ko": driver("alias=virtio:d1v*"),
	})
	loader := deb(t, map[string][]byte{
		"/usr/lib/ISOLINUX/isolinux.bin": make([]byte, 24<<10), "/usr/lib/syslinux/modules/bios/ldlinux.c32": []byte("c32"),
		"/usr/lib/syslinux/modules/efi64/ldlinux.c32": []byte("not this"), "/usr/lib/systemd/boot/efi/linuxx64.efi.stub": stub.EFI("a stub"),
		"/boot/ipxe.efi": stub.EFI("iPXE"),
	})
	dir := filepath.Join(t.TempDir(), "image")
	made, err := Build(t.Context(), Config{Agent: agent, Packages: []string{linux, loader}}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{bootsISOLegacy, bootsISOUEFI, bootsPXEUEFI, bootsIPXE}; made.Kernel != "6.1.0-test" || made.Drivers != 1 || !slices.Equal(made.Boots, want) {
		t.Errorf("made %+v, want %q", made, want)
	}
	packed, err := os.ReadFile(filepath.Join(dir, netboot.InitrdFile))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	z.Multistream(false) // zeros fill it up
	var plain bytes.Buffer
	if _, err := plain.ReadFrom(z); err != nil {
		t.Fatal(err)
	}
	entries, _, err := cpio.Read(plain.Bytes())
	if init, ok := cpio.Find(entries, "/init"); err != nil || !ok || !bytes.Equal(init, static) {
		t.Errorf("init is not the agent: %v", err)
	}
	if _, ok := cpio.Find(entries, boot.ModuleDir+"/virtio_net.ko"); !ok {
		t.Error("the driver is not there")
	}
	img, err := netboot.LoadImage(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := img.Close(); err != nil {
		t.Error(err)
	}

	for name, c := range map[string]Config{
		"no kernel":         {Agent: agent, Packages: []string{loader}},
		"two kernels":       {Agent: agent, Packages: []string{linux, linux}},
		"no package":        {Agent: agent, Packages: []string{agent}},
		"no agent":          {Agent: agent + "x", Packages: []string{linux}},
		"agent is no ELF":   {Agent: linux, Packages: []string{linux}},
		"no file of kernel": {Agent: self, Kernel: agent + "x"},
	} {
		if made, err := Build(t.Context(), c, t.TempDir()); err == nil {
			t.Errorf("%s: made %+v", name, made)
		}
	}
}

// FuzzDeb: whatever a package holds, reading it ends.
func FuzzDeb(f *testing.F) {
	good, err := os.ReadFile(deb(f, map[string][]byte{"/boot/vmlinuz-1": []byte("x"), "/lib/modules/1/kernel/a.ko": driver("alias=x")}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		name := filepath.Join(dir, "f.deb")
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		p := &parts{modules: map[string]module{}, loaders: map[string][]byte{}}
		if err := readDeb(name, p.take); err == nil && p.kernel == nil && len(p.modules)+len(p.loaders) > 0 && !bytes.Contains(b, []byte(arMagic)) {
			t.Fatal("read what is no package")
		}
	})
}
