package redfish

import (
	"errors"
	"io"
	mimetype "mime"
	"mime/multipart"
	"net/http"
	"os"
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
	oemPart        = "Oem" // prefix
)

// maxOtherParts is the largest size of the parts of a multipart push beside the image,
// in bytes.
const maxOtherParts = 1 << 20

// uploads serve the requests whose bodies are not JSON.
var uploads = map[resource.UploadKind]func(x *request, c resource.Call) (resource.Result, error){
	resource.PlainUpload:     pushPlain,
	resource.MultipartUpload: pushMultipart,
}

// pushPlain installs the image that is the body of a request, with the options of the
// update service (HttpPushUriOptions and HttpPushUriTargets).
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
	img, err := x.receiveImage(x.r.Body)
	if err != nil {
		return resource.Result{}, err
	}
	return x.installImage(c, img, stage, "Update with a pushed image")
}

// pushMultipart installs the image of a multipart request, with the options that come
// with it.
func pushMultipart(x *request, c resource.Call) (resource.Result, error) {
	if err := c.RequireUpdatesEnabled(); err != nil {
		return resource.Result{}, err
	}
	kind, params, err := mimetype.ParseMediaType(x.r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" || params["boundary"] == "" {
		return resource.Result{}, resource.Reject(http.StatusUnsupportedMediaType, message.UnrecognizedRequestBody.With())
	}
	p := multipartPush{x: x, r: multipart.NewReader(x.r.Body, params["boundary"]), otherBytes: maxOtherParts}
	if err := p.read(); err != nil {
		p.dropImage()
		return resource.Result{}, err
	}
	x.vendor.StandardURIs(p.parameters)
	set, bad := resource.Validate(p.parameters, resource.UpdateParameters, c.View, nil)
	if len(bad) > 0 {
		p.dropImage()
		return resource.Result{}, resource.Reject(http.StatusBadRequest, resource.Map(bad, resource.InputError.PropertyMessage)...)
	}
	c.Body = p.parameters
	stage, err := c.Stage("MultipartHttpPushUri", set)
	if err != nil {
		p.dropImage()
		return resource.Result{}, err
	}
	name := "a pushed image"
	if p.name != "" {
		name = p.name
	}
	return x.installImage(c, *p.image, stage, "Update with "+name)
}

// multipartPush reads the parts of a multipart push.
type multipartPush struct {
	x             *request
	r             *multipart.Reader
	otherBytes    int64 // bytes that may still come beside the image
	parameters    resource.Document
	hasParameters bool
	image         *resource.Image // stored; nil before its part
	name          string          // name of the file
}

// read reads all parts, and fails if a required one is missing.
func (p *multipartPush) read() error {
	for {
		part, err := p.r.NextRawPart()
		switch {
		case errors.Is(err, io.EOF):
			return p.checkComplete()
		case err != nil:
			return rejectBody(err)
		}
		if err := p.readPart(part); err != nil {
			return err
		}
	}
}

// checkComplete returns an error that names the missing parts.
func (p *multipartPush) checkComplete() error {
	var missing []message.Message
	if !p.hasParameters {
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

// readPart reads one part. It stores an image at once.
func (p *multipartPush) readPart(part *multipart.Part) error {
	name := part.FormName()
	switch {
	case name == filePart && p.image == nil:
		img, err := p.x.receiveImage(part)
		if err != nil {
			return err
		}
		p.image, p.name = &img, part.FileName()
		return nil
	case name == filePart || name == parametersPart && p.hasParameters:
		return resource.Reject(http.StatusBadRequest, message.PropertyDuplicate.With(name))
	}
	b, err := io.ReadAll(io.LimitReader(part, p.otherBytes+1))
	switch p.otherBytes -= int64(len(b)); {
	case err != nil:
		return rejectBody(err)
	case p.otherBytes < 0:
		return resource.Reject(http.StatusRequestEntityTooLarge, message.PayloadTooLarge.With())
	case strings.HasPrefix(name, oemPart): // another vendor's part is ignored
		return nil
	case name != parametersPart:
		return resource.Reject(http.StatusBadRequest, message.PropertyUnknown.With(name))
	}
	p.hasParameters = true
	p.parameters, err = resource.Parse(b)
	switch {
	case errors.Is(err, resource.ErrMalformed):
		return resource.Reject(http.StatusBadRequest, message.MalformedJSON.With())
	case err != nil:
		return resource.Reject(http.StatusBadRequest, message.UnrecognizedRequestBody.With())
	}
	return nil
}

// dropImage deletes the stored image, if there is one.
func (p *multipartPush) dropImage() {
	if p.image != nil {
		p.x.host.DropImage(p.image.ID)
	}
}

// receiveImage stores an image that a client sends. The error of a client that stops
// sending differs from one of the store.
func (x *request) receiveImage(r io.Reader) (resource.Image, error) {
	body := &clientReader{r: r}
	img, err := x.host.StoreImage(x.context(), body, x.vendor.MaxImageBytes())
	switch {
	case errors.Is(err, resource.ErrTooLarge):
		return resource.Image{}, resource.Reject(http.StatusRequestEntityTooLarge, message.PayloadTooLarge.With())
	case body.err != nil:
		return resource.Image{}, rejectBody(body.err)
	}
	return img, err
}

// rejectBody returns the error of a body that could not be read: the client has stopped
// sending it, or sends it so slowly that the server has cut it.
func rejectBody(err error) error {
	status := http.StatusBadRequest
	if errors.Is(err, os.ErrDeadlineExceeded) {
		status = http.StatusRequestTimeout
	}
	return resource.Reject(status, message.UnrecognizedRequestBody.With())
}

// clientReader reads what a client sends, and holds the error of the connection.
type clientReader struct {
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (c *clientReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}

// installImage opens the task that installs a stored image. On failure it deletes the
// image.
func (x *request) installImage(c resource.Call, img resource.Image, stage firmware.Stage, name string) (resource.Result, error) {
	stage.ID, stage.Image, stage.Defect = img.ID, img.Image, img.Defect
	out, err := c.BeginTask(x.context(), name, func(taskID string) machine.Command {
		stage.Task = taskID
		return machine.Firmware{Command: stage}
	})
	if err != nil {
		x.host.DropImage(img.ID)
	}
	return out, err
}
