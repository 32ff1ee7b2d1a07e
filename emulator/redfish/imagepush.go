package redfish

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	mimetype "mime"
	"mime/multipart"
	"net/http"
	"os"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
	"github.com/metalab-dev/metalab/emulator/redfish/vendor"
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
	switch t, _, _ := mimetype.ParseMediaType(x.r.Header.Get("Content-Type")); {
	case x.vendor.Uploads().OctetStreamOnly && t != "application/octet-stream":
		return resource.Result{}, resource.Reject(http.StatusBadRequest, message.UnrecognizedRequestBody.With())
	case t == "multipart/form-data" || t == "application/json":
		return resource.Result{}, resource.Reject(http.StatusUnsupportedMediaType, message.UnrecognizedRequestBody.With())
	}
	if err := x.rejectUpload(resource.Document{}); err != nil {
		return resource.Result{}, err
	}
	u := c.Host.BMC().Updates
	set := resource.Values{"ForceUpdate": u.Force}
	var targets []any
	for _, t := range u.Targets {
		targets = append(targets, t)
	}
	set["Targets"] = targets
	stage, err := c.Stage("", set)
	if err != nil {
		return resource.Result{}, err
	}
	stage.When = resource.PushTime(u)
	img, err := x.receiveImage(x.r.Body)
	switch {
	case errors.Is(err, errEmptyImage):
		return resource.Result{}, resource.Reject(http.StatusBadRequest, message.UnrecognizedRequestBody.With())
	case err != nil:
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
	p := multipartPush{x: x, r: multipart.NewReader(x.r.Body, params["boundary"]), otherBytes: maxOtherParts, action: x.vendor.Uploads().Action}
	stage, err := p.stage(&c)
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

// asked returns the push as the vendor's rules select it.
func (x *request) asked() vendor.Request {
	return vendor.Request{Method: x.r.Method, Match: x.match, At: resource.TakeSnapshot(x.host)}
}

// rejectUpload returns the error of the vendor's RejectRule that applies to a push with
// the parameters in; nil: none does.
func (x *request) rejectUpload(in resource.Document) error {
	if rejection := x.vendor.Reject(x.asked(), in); rejection != nil {
		return resource.Reject(rejection.Status, rejection.Message)
	}
	return nil
}

// multipartPush reads the parts of a multipart push.
type multipartPush struct {
	x             *request
	r             *multipart.Reader
	action        string // name of the action as whose parameters errors name parts; "": as properties
	otherBytes    int64  // bytes that may still come beside the image
	parameters    resource.Document
	hasParameters bool
	image         *resource.Image // stored; nil before its part
	name          string          // name of the file
}

// stage reads the push, checks its parameters, and returns the update that it asks for.
func (p *multipartPush) stage(c *resource.Call) (firmware.Stage, error) {
	if err := p.read(); err != nil {
		return firmware.Stage{}, err
	}
	p.x.vendor.StandardURIs(p.parameters)
	if err := p.x.rejectUpload(p.parameters); err != nil {
		return firmware.Stage{}, err
	}
	c.Body = p.parameters
	in := p.x.vendor.Decode(p.x.asked(), p.parameters)
	set, bad := resource.Validate(in, resource.UpdateParameters, c.View, nil)
	if len(bad) > 0 {
		about := resource.InputError.PropertyMessage
		if p.action != "" {
			about = func(r resource.InputError) message.Message { return r.ParameterMessage(p.action) }
		}
		return firmware.Stage{}, resource.Reject(http.StatusBadRequest, resource.Map(bad, about)...)
	}
	if targets, _ := set["Targets"].([]any); len(targets) > cmp.Or(p.x.vendor.Uploads().MaxTargets, math.MaxInt) {
		m := message.PropertyValueFormatError.With(fmt.Sprint(targets), "Targets").About("#/Targets")
		return firmware.Stage{}, resource.Reject(http.StatusBadRequest, m)
	}
	return c.Stage(p.action, set)
}

// read reads all parts, in whatever order they come: DSP0266 asks for none. It fails if a
// required one is missing.
func (p *multipartPush) read() error {
	for {
		part, err := p.r.NextRawPart()
		switch {
		case errors.Is(err, io.EOF) && errors.Unwrap(err) == nil: // a wrapped io.EOF is the end of the body before the last boundary
			return p.checkComplete()
		case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
			return p.rejectPart(message.UnrecognizedRequestBody.With())
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
	if !p.hasParameters && !p.x.vendor.Uploads().OptionalParameters {
		missing = append(missing, p.missing(parametersPart))
	}
	if p.image == nil {
		missing = append(missing, p.missing(filePart))
	}
	if len(missing) > 0 {
		return p.rejectPart(missing...)
	}
	return nil
}

// missing returns the message for a part that is missing.
func (p *multipartPush) missing(name string) message.Message {
	if p.action != "" {
		return message.ActionParameterMissing.With(p.action, name)
	}
	return message.PropertyMissing.With(name)
}

// rejectPart returns the error of a part that is missing or cannot be read. Base has a
// message for that since 1.13, which does not name the part: the details do.
func (p *multipartPush) rejectPart(details ...message.Message) error {
	m := message.MissingOrMalformedPart.With()
	if p.action == "" && !p.x.vendor.Registries().Before(m.Registry, m.Since) {
		details = append([]message.Message{m}, details...)
	}
	return resource.Reject(http.StatusBadRequest, details...)
}

// readPart reads one part. It stores an image at once.
func (p *multipartPush) readPart(part *multipart.Part) error {
	name := part.FormName()
	switch {
	case name == filePart && p.image == nil:
		img, err := p.x.receiveImage(part)
		switch {
		case errors.Is(err, errEmptyImage):
			return p.rejectPart(p.missing(filePart))
		case err != nil:
			return err
		}
		p.image, p.name = &img, part.FileName()
		return nil
	case name == filePart || name == parametersPart && p.hasParameters:
		if p.action != "" {
			return p.rejectPart(message.ActionParameterDuplicate.With(p.action, name))
		}
		return p.rejectPart(message.PropertyDuplicate.With(name))
	}
	b, err := io.ReadAll(io.LimitReader(part, p.otherBytes+1))
	switch p.otherBytes -= int64(len(b)); {
	case err != nil:
		return rejectBody(err)
	case p.otherBytes < 0:
		return resource.Reject(http.StatusRequestEntityTooLarge, message.PayloadTooLarge.With())
	case name == parametersPart:
		return p.parseParameters(b)
	case strings.HasPrefix(name, oemPart) || p.x.vendor.Uploads().IgnoreUnknownParts: // another vendor's part is ignored
		return nil
	case p.action != "":
		return resource.Reject(http.StatusBadRequest, message.ActionParameterUnknown.With(p.action, name))
	}
	return resource.Reject(http.StatusBadRequest, message.PropertyUnknown.With(name))
}

// parseParameters parses the part UpdateParameters.
func (p *multipartPush) parseParameters(b []byte) (err error) {
	p.hasParameters = true
	p.parameters, err = resource.Parse(b)
	switch {
	case errors.Is(err, resource.ErrMalformed):
		return p.rejectPart(message.MalformedJSON.With())
	case err != nil && p.action != "":
		return p.rejectPart(message.ActionParameterValueTypeError.With(string(b), parametersPart, p.action))
	case err != nil: // not an object
		return p.rejectPart(message.PropertyValueTypeError.With(string(b), parametersPart))
	}
	return nil
}

// dropImage deletes the stored image, if there is one.
func (p *multipartPush) dropImage() {
	if p.image != nil {
		p.x.host.DropImage(p.image.ID)
	}
}

// errEmptyImage means that a client has sent an image of no bytes.
var errEmptyImage = errors.New("redfish: the image is empty")

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
	case err == nil && body.size == 0:
		x.host.DropImage(img.ID)
		return resource.Image{}, errEmptyImage
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

// clientReader reads what a client sends, and holds its size and the error of the
// connection.
type clientReader struct {
	r    io.Reader
	size int64 // bytes
	err  error
}

// Read implements io.Reader.
func (c *clientReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.size += int64(n)
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
