package netboot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/netboot/cpio"
	"github.com/metalab-dev/metalab/controller/netboot/stub"
)

// Names of the files that servers boot, in a directory of LoadImage and in URLs.
const (
	ISOFile    = "agent.iso"     // El Torito, for virtual media and HTTP boot
	KernelFile = "vmlinuz"       // Linux, for iPXE
	InitrdFile = "initrd.img"    // initrd with the agent, without a configuration
	LegacyPXE  = "undionly.kpxe" // iPXE for PC BIOS, by TFTP
	UEFIPXE    = "ipxe.efi"      // iPXE for UEFI on x86-64, by TFTP
)

// Messages on the screen of a server that boots an image without a kernel.
const (
	kernelLine  = "Metalab agent without a kernel: nothing to run on this server."
	programLine = "Metalab network boot program without iPXE: nothing to run on this server."
)

// Image is the set of files that servers boot. It is safe for concurrent use.
type Image struct {
	iso   *blank
	files map[string]*blank // the others, which have no slots
	open  []io.Closer
}

// LoadImage opens an image that `labctl image build agent` has made in a directory. The
// network boot programs may be missing: then a server whose firmware has no iPXE boots a
// program that prints a message and stops.
func LoadImage(dir string) (_ *Image, err error) {
	stubs, err := stubImage()
	if err != nil {
		return nil, err
	}
	img := &Image{files: maps.Clone(stubs.files)}
	defer func() {
		if err != nil {
			err = errors.Join(err, img.Close())
		}
	}()
	for name, needed := range map[string]bool{ISOFile: true, KernelFile: true, InitrdFile: true, LegacyPXE: false, UEFIPXE: false} {
		f, err := os.Open(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) && !needed {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("image: %w", err)
		}
		img.open = append(img.open, f)
		st, err := f.Stat()
		if err != nil {
			return nil, fmt.Errorf("image: %w", err)
		}
		b := &blank{r: f, size: st.Size()}
		if name != ISOFile {
			img.files[name] = b
			continue
		}
		if img.iso, err = newBlank(f, st.Size()); err != nil {
			return nil, fmt.Errorf("image: %s: %w", name, err)
		}
		if len(img.iso.slots) == 0 {
			return nil, fmt.Errorf("image: %s has no room for a configuration: make it with `labctl image build agent`", name)
		}
	}
	return img, nil
}

// stubImage returns an image with programs that print a line instead of a kernel. It is
// enough for emulated servers, whose lab runs the agent.
var stubImage = sync.OnceValues(func() (*Image, error) {
	iso, err := BuildISO(map[string][]byte{job.MediaConfigPath: Slot()})
	if err != nil {
		return nil, err
	}
	legacy, err := stub.BootSector(programLine)
	if err != nil {
		return nil, err
	}
	img := &Image{files: map[string]*blank{
		KernelFile: blankOf(stub.EFI(kernelLine)), InitrdFile: blankOf(cpio.Append(nil)),
		LegacyPXE: blankOf(legacy), UEFIPXE: blankOf(stub.EFI(programLine)),
	}}
	img.iso, err = newBlank(bytes.NewReader(iso), int64(len(iso)))
	return img, err
})

func blankOf(b []byte) *blank { return &blank{r: bytes.NewReader(b), size: int64(len(b))} }

// Close closes the files.
func (i *Image) Close() error {
	var err error
	for _, c := range i.open {
		err = errors.Join(err, c.Close())
	}
	return err
}
