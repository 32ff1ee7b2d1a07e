package redfish

import (
	"errors"
	"io"
	mimetype "mime"
	"mime/multipart"
	"net/http"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// The parts of a multipart push (DSP0266, "Multipart HTTP push updates").
const (
	parametersPart = "UpdateParameters"
	filePart       = "UpdateFile"
	oemPart        = "Oem" // and what follows
)

// maxBeside bounds what a multipart push has beside the image, in bytes.
const maxBeside = 1 << 20

// uploads take bodies that are no JSON.
var uploads = map[resource.UploadKind]func(x *request, c resource.Call) (resource.Result, error){resource.PlainUpload: pushPlain, resource.MultipartUpload: pushMultipart}

// pushPlain takes an image that is the body of a request, and installs it as
// the service's options say.
func pushPlain(x *request, c resource.Call) (resource.Result, error) {
	if err := c.RequireUpdatesEnabled(); err != nil {
		return resource.Result{}, err
	}
	if t, _, _ := mimetype.ParseMediaType(x.r.Header.Get("Content-Type")); t == "multipart/form-data" || t == "application/json" {
		return resource.Result{}, resource.Reject(http.StatusUnsupportedMediaType, message.UnrecognizedRequestBody.With())
	}
	u := c.Host.BMC().Updates
	set := resource.Values{"ForceUpdate": u.Force}
	var targets []any
	for _, t := range u.Targets {
		targets = append(targets, t)
	}
	set["Targets"] = targets
	stage, err := c.Stage(resource.PlainPush, set)
	if err != nil {
		return resource.Result{}, err
	}
	stage.When = resource.PushTime(u)
	img, err := x.receive(x.r.Body)
	if err != nil {
		return resource.Result{}, err
	}
	return x.install(c, img, stage, "Update with a pushed image")
}

// pushMultipart takes an image with what is to be done with it.
func pushMultipart(x *request, c resource.Call) (resource.Result, error) {
	if err := c.RequireUpdatesEnabled(); err != nil {
		return resource.Result{}, err
	}
	kind, params, err := mimetype.ParseMediaType(x.r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" || params["boundary"] == "" {
		return resource.Result{}, resource.Reject(http.StatusUnsupportedMediaType, message.UnrecognizedRequestBody.With())
	}
	p := pushed{x: x, r: multipart.NewReader(x.r.Body, params["boundary"]), beside: maxBeside}
	if err := p.read(); err != nil {
		p.drop()
		return resource.Result{}, err
	}
	x.vendor.StandardURIs(p.parameters)
	set, bad := resource.Validate(p.parameters, resource.UpdateParameters, c.View, nil)
	if len(bad) > 0 {
		p.drop()
		return resource.Result{}, resource.Reject(http.StatusBadRequest, resource.Map(bad, resource.InputError.PropertyMessage)...)
	}
	c.Body = p.parameters
	stage, err := c.Stage("MultipartHttpPushUri", set)
	if err != nil {
		p.drop()
		return resource.Result{}, err
	}
	name := "a pushed image"
	if p.name != "" {
		name = p.name
	}
	return x.install(c, *p.image, stage, "Update with "+name)
}

// pushed are the parts of a multipart push, as they come.
type pushed struct {
	x          *request
	r          *multipart.Reader
	beside     int64 // bytes that may still come beside the image
	parameters resource.Document
	given      bool // the parameters were
	image      *resource.Image
	name       string // of the file
}

func (p *pushed) read() error {
	for {
		part, err := p.r.NextRawPart()
		switch {
		case errors.Is(err, io.EOF):
			return p.complete()
		case err != nil:
			return resource.Reject(http.StatusBadRequest, message.UnrecognizedRequestBody.With())
		}
		if err := p.take(part); err != nil {
			return err
		}
	}
}

// complete says which part is missing.
func (p *pushed) complete() error {
	var missing []message.Message
	if !p.given {
		missing = append(missing, message.PropertyMissing.With(parametersPart))
	}
	if p.image == nil {
		missing = append(missing, message.PropertyMissing.With(filePart))
	}
	if len(missing) > 0 {
		return resource.Reject(http.StatusBadRequest, missing...)
	}
	return nil
}

func (p *pushed) take(part *multipart.Part) error {
	name := part.FormName()
	switch {
	case name == filePart && p.image == nil:
		img, err := p.x.receive(part)
		if err != nil {
			return err
		}
		p.image, p.name = &img, part.FileName()
		return nil
	case name == filePart || name == parametersPart && p.given:
		return resource.Reject(http.StatusBadRequest, message.PropertyDuplicate.With(name))
	}
	b, err := io.ReadAll(io.LimitReader(part, p.beside+1))
	switch p.beside -= int64(len(b)); {
	case err != nil:
		return resource.Reject(http.StatusBadRequest, message.UnrecognizedRequestBody.With())
	case p.beside < 0:
		return resource.Reject(http.StatusRequestEntityTooLarge, message.PayloadTooLarge.With())
	case strings.HasPrefix(name, oemPart): // of vendors that this one is not
		return nil
	case name != parametersPart:
		return resource.Reject(http.StatusBadRequest, message.PropertyUnknown.With(name))
	}
	p.given = true
	p.parameters, err = resource.Parse(b)
	switch {
	case errors.Is(err, resource.ErrMalformed):
		return resource.Reject(http.StatusBadRequest, message.MalformedJSON.With())
	case err != nil:
		return resource.Reject(http.StatusBadRequest, message.UnrecognizedRequestBody.With())
	}
	return nil
}

// drop forgets the image.
func (p *pushed) drop() {
	if p.image != nil {
		p.x.host.DropImage(p.image.ID)
	}
}

// receive stores an image that comes with a request.
func (x *request) receive(r io.Reader) (resource.Image, error) {
	from := &sender{r: r}
	img, err := x.host.StoreImage(x.context(), from, x.vendor.MaxImageBytes())
	switch {
	case errors.Is(err, resource.ErrTooLarge):
		return resource.Image{}, resource.Reject(http.StatusRequestEntityTooLarge, message.PayloadTooLarge.With())
	case from.err != nil:
		return resource.Image{}, resource.Reject(http.StatusBadRequest, message.UnrecognizedRequestBody.With())
	}
	return img, err
}

// sender is a client that sends an image; it remembers what went wrong there.
type sender struct {
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (s *sender) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// install begins the update with an image that was stored.
func (x *request) install(c resource.Call, img resource.Image, stage firmware.Stage, name string) (resource.Result, error) {
	stage.ID, stage.Image, stage.Defect = img.ID, img.Image, img.Defect
	out, err := c.BeginTask(x.context(), name, func(job string) machine.Command {
		stage.Task = job
		return machine.Firmware{Command: stage}
	})
	if err != nil {
		x.host.DropImage(img.ID)
	}
	return out, err
}
