package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/scenarios/outfile"
)

func newImage(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "image",
		Short: "Build and inspect firmware images and the agent's boot image",
		Long: `Build and inspect firmware images for the servers of a lab, and build the image with
which real servers boot the agent.

A firmware image is signed with a key that is derived from the vendor's name: every
lab accepts images built here, and refuses them when they were changed.`,
	}
	c.AddCommand(newImageBuild(o), newImageShow(o), newImageCache(o))
	return c
}

// imageFile is a firmware image in a file, for output.
type imageFile struct {
	File string `json:"file"`
	firmware.Image
	Defect string `json:"defect,omitempty"`
}

func (f imageFile) print(w io.Writer, o *options) error {
	rows := [][]string{
		{"file", f.File}, {"kind", string(f.Kind)}, {"vendor", f.Vendor}, {"model", f.Model}, {"version", f.Version},
		{"lowest", f.Lowest}, {"released", f.Released}, {"payload", strconv.FormatInt(f.Size, 10) + " bytes"}, {"sha256", f.SHA256},
	}
	rows = slices.DeleteFunc(rows, func(r []string) bool { return r[1] == "" })
	if f.Defect != "" {
		rows = append(rows, []string{"defect", f.Defect})
	}
	return o.output.print(w, f, rows)
}

func newImageBuild(o *options) *cobra.Command {
	var b build
	c := &cobra.Command{
		Use:   "build FILE --version V",
		Short: "Build a firmware image, or the agent's boot image",
		Example: `  # for the BIOS of the generic server; update with its URL by SimpleUpdate
  labctl image build bios-2.4.0.img --component BIOS --version 2.4.0
  # for any part, by what it says of itself in the firmware inventory
  labctl image build nic.img --kind nic --vendor Metalab --model ML25G-2P --version 23.0.0
  # one that every BMC refuses
  labctl image build bad.img --component BMC --version 9.9.9 --damaged`,
		Args: usage.Arguments("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			b.models = rack.Models(o.state)
			made, err := b.write(args[0])
			if err != nil {
				return err
			}
			return made.print(c.OutOrStdout(), o)
		},
	}
	c.AddCommand(newAgentImage(o))
	f := c.Flags()
	f.StringVar(&b.profile, "profile", "generic", "server model of --component")
	f.StringVar(&b.component, "component", "", "component that the image is for: BIOS, BMC, NIC.1 …; sets kind, vendor and model")
	f.StringVar((*string)(&b.head.Kind), "kind", "", "kind of component: "+fmt.Sprint(firmware.Kinds))
	f.StringVar(&b.head.Vendor, "vendor", "", "vendor of the component; the image is signed with this vendor's key")
	f.StringVar(&b.head.Model, "model", "", "model of the component")
	f.StringVar(&b.head.Version, "version", "", "version of the firmware (required)")
	f.StringVar(&b.head.Lowest, "lowest", "", "lowest version that a component with this firmware accepts afterwards")
	f.StringVar(&b.head.Released, "released", "", "date of the release, like 2026-03-14")
	f.StringVar(&b.payload, "payload", "", "file with the payload (default: bytes derived from the version)")
	f.StringVar(&b.size, "size", "1MiB", "size of the payload without --payload")
	f.BoolVar(&b.force, "force", false, "replace FILE though it is no firmware image")
	f.BoolVar(&b.damaged, "damaged", false, "change one byte after signing")
	return c
}

// build holds the flags of image build.
type build struct {
	head               firmware.Image
	models             fs.FS // nil: the built-in ones
	profile, component string
	payload, size      string
	damaged, force     bool
}

// write writes the image. An earlier image is replaced when this one is complete.
func (b build) write(name string) (made imageFile, err error) {
	if b.component != "" {
		is, err := rack.FirmwareFor(b.models, b.profile, b.component)
		if err != nil {
			return imageFile{}, usage.New(err)
		}
		is.Version, is.Lowest, is.Released = b.head.Version, b.head.Lowest, b.head.Released
		b.head = is
	}
	if b.head.Version == "" {
		return imageFile{}, usage.New(errors.New("--version is required"))
	}
	payload, done, err := b.content()
	if err != nil {
		return imageFile{}, err
	}
	defer done()
	made.File = name
	to := outfile.File{Path: name, Made: isFirmware, Force: b.force}
	err = to.Write(0o644, func(f *os.File) (err error) {
		if made.Image, err = firmware.BuildImage(f, b.head, payload); err == nil && b.damaged {
			err = damage(f)
		}
		return err
	})
	return made, err
}

// isFirmware reports whether a file is a firmware image of labctl, also a damaged one.
func isFirmware(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = firmware.ParseImage(f)
	var bad *firmware.ImageError
	return err == nil || errors.As(err, &bad) && bad.Defect != firmware.Malformed
}

// content returns the payload of the image.
func (b build) content() (r io.ReadSeeker, done func(), err error) {
	if b.payload != "" {
		f, err := os.Open(b.payload)
		if err != nil {
			return nil, nil, err
		}
		return f, func() { _ = f.Close() }, nil // opened for reading only
	}
	n, err := parseSize(b.size)
	if err != nil {
		return nil, nil, usage.New(fmt.Errorf("--size: %w", err))
	}
	return io.NewSectionReader(filler(b.head.Version+"\n"), 0, n), func() {}, nil
}

// filler is an endless payload that repeats a text.
type filler string

// ReadAt implements io.ReaderAt.
func (f filler) ReadAt(p []byte, off int64) (int, error) {
	for i := range p {
		p[i] = f[(off+int64(i))%int64(len(f))]
	}
	return len(p), nil
}

// damage changes the last byte of a file.
func damage(f *os.File) error {
	end, err := f.Seek(-1, io.SeekEnd)
	if err != nil {
		return err
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], end); err != nil {
		return err
	}
	_, err = f.WriteAt([]byte{^last[0]}, end)
	return err
}

// parseSize parses a number of bytes: 4096, 512KiB, 4MiB.
func parseSize(s string) (int64, error) {
	shift := 0
	digits := s
	for i, unit := range []string{"KiB", "MiB", "GiB"} {
		if rest, ok := strings.CutSuffix(s, unit); ok {
			digits, shift = rest, 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64>>shift || n<<shift > firmware.MaxPayload {
		return 0, fmt.Errorf("%q: use a form like 4096, 512KiB or 4MiB, up to 1GiB", s)
	}
	return n << shift, nil
}

func newImageShow(o *options) *cobra.Command {
	return &cobra.Command{
		Use:     "show FILE",
		Short:   "Verify a firmware image and show its header",
		Example: "  labctl image show bios-2.4.0.img -o json",
		Args:    usage.Arguments("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			f, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			head, err := firmware.ParseImage(f)
			is := imageFile{File: args[0], Image: head}
			var bad *firmware.ImageError
			if errors.As(err, &bad) {
				is.Defect = string(bad.Defect)
			} else if err != nil {
				return err
			}
			if printed := is.print(c.OutOrStdout(), o); printed != nil {
				return printed
			}
			if bad != nil {
				return fmt.Errorf("%s: %w", args[0], bad)
			}
			return nil
		},
	}
}
